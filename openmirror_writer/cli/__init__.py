"""The command line ``openmirror``. Needs ``pip install 'openmirror-writer[cli]'``."""

# Before anything of this package is imported, so that whoever lacks the extra reads how to get it.
try:
    import rich
    import typer
except ImportError as error:
    raise ImportError("the command openmirror needs typer and rich: pip install 'openmirror-writer[cli]'") from error

from openmirror_writer.cli.app import app, main

__all__ = ["app", "main"]

del rich, typer
