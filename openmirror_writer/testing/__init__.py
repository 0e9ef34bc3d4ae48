"""For the tests of your own publisher: `replay`, `Mirror`, and a pytest plugin with the fixtures that need them.

`replay` gives what the tables of a zone hold by the documented semantics, in memory; `Mirror` applies them to Delta
tables. The plugin (``pip install 'openmirror-writer[testing]'`` switches it on) has the fixtures ``landing_zone``,
``mirror`` and ``mirror_target``.
"""

from typing import TYPE_CHECKING, Any

from openmirror_writer.replay import replay

if TYPE_CHECKING:
    from openmirror_writer.spark import Mirror

__all__ = ["Mirror", "replay"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever a module holds
    """Import `Mirror` when it is asked for: PySpark is an optional extra, and slow to import.

    Raises:
        ImportError: PySpark or Delta Lake is not installed; the message says how to install them.
        AttributeError: There is nothing of this name.
    """
    if name == "Mirror":
        from openmirror_writer.spark import Mirror  # noqa: PLC0415 - an optional extra

        return Mirror
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
