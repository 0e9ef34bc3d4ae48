"""The pytest plugin, used as a publisher's own tests use it."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import distribution
from typing import Any

import pytest

from openmirror_writer import replay, testing

pytest_plugins = ["pytester"]

PLUGIN = "openmirror_writer.testing.plugin"


@pytest.fixture
def own_tests(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder for tests that run with our plugin and no other."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    return pytester


def test_replay_and_mirror_are_exported() -> None:
    from openmirror_writer.spark import Mirror  # noqa: PLC0415 - the import is what is tested

    assert testing.replay is replay
    assert testing.Mirror is Mirror
    with pytest.raises(AttributeError, match="no attribute 'mirror_of'"):
        _ = testing.mirror_of


def test_the_installed_package_switches_the_plugin_on() -> None:
    points = {
        point.name: point.value for point in distribution("openmirror-writer").entry_points if point.group == "pytest11"
    }
    assert points == {"openmirror_writer": PLUGIN}


def test_the_plugin_does_not_import_spark() -> None:
    code = f"import sys, openmirror_writer.testing, {PLUGIN}; assert 'pyspark' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_landing_zone_is_empty_and_new_for_each_test(own_tests: pytest.Pytester) -> None:
    own_tests.makepyfile(
        """
        import pytest
        from openmirror_writer import Writer
        from openmirror_writer.testing import replay

        @pytest.mark.parametrize("n", [1, 2])
        def test_it(landing_zone, n):
            assert replay(landing_zone) == {}
            Writer(landing_zone.table("orders", key_columns=["id"])).upsert([{"id": n}])
            assert replay(landing_zone)["orders"].to_pylist() == [{"id": n}]
        """
    )
    own_tests.runpytest_subprocess("-p", PLUGIN).assert_outcomes(passed=2)


def test_without_spark_the_mirror_says_what_to_install(own_tests: pytest.Pytester) -> None:
    own_tests.makeconftest("import sys; sys.modules['pyspark'] = None")
    own_tests.makepyfile("def test_it(mirror): ...")
    result = own_tests.runpytest_subprocess("-p", PLUGIN)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*ImportError: *pip install 'openmirror-writer[[]spark]'*"])


def test_the_mirror_applies_the_landing_zone(own_tests: pytest.Pytester, spark: Any) -> None:
    """In this process, so that the session that runs is used."""
    own_tests.makepyfile(
        """
        from openmirror_writer import Writer

        def test_it(landing_zone, mirror, mirror_target, openmirror_spark):
            Writer(landing_zone.table("orders", key_columns=["id"])).upsert([{"id": 1}])
            mirror.run_once().raise_for_failures()
            table = openmirror_spark.read.format("delta").load(str(mirror_target / "dbo" / "orders"))
            assert table.collect() == [(1,)]
        """
    )
    own_tests.runpytest_inprocess("-p", PLUGIN).assert_outcomes(passed=1)
    assert spark.sql("SELECT 1").collect() == [(1,)]
