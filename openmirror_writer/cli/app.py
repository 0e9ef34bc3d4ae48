"""The commands together, and what becomes of their errors."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated

import typer
from rich.console import Console

from openmirror_writer.cli.apply import apply
from openmirror_writer.cli.check import check
from openmirror_writer.cli.demo import demo
from openmirror_writer.cli.inspect import inspect
from openmirror_writer.cli.spark_extra import MissingExtraError
from openmirror_writer.cli.trace import trace
from openmirror_writer.errors import OpenMirrorError

app = typer.Typer(
    name="openmirror",
    help="Look at landing zones of Microsoft Fabric open mirroring, and apply them to Delta tables.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(inspect)
app.command()(check)
app.command()(trace)
app.command()(apply)
app.command()(demo)


@app.callback(invoke_without_command=True)
def openmirror(
    *, show_version: Annotated[bool, typer.Option("--version", help="Print the version and end.")] = False
) -> None:
    """Look at landing zones of Microsoft Fabric open mirroring, and apply them to Delta tables."""
    if show_version:
        typer.echo(version("openmirror-writer"))
        raise typer.Exit


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and end the process.

    Args:
        arguments: Without the program's name; None: those of the process.

    Raises:
        SystemExit: Always. 0: done. 1: an error of this package, told in one message on stderr without a traceback, or
            a command's own finding (a table that failed, a difference). 2: wrong usage.
    """
    try:
        app(args=arguments, prog_name="openmirror")
    except (OpenMirrorError, MissingExtraError) as error:
        Console(stderr=True).print(f"openmirror: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(1)
