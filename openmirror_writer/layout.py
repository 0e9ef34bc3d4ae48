"""Names of folders and files in a landing zone. Pure; the rules are those of the landing zone's documentation.

A table folder holds numbered data files, ``_metadata.json`` and files of ours that begin with ``_``, which
the service's discovery ignores.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from openmirror_writer.errors import SchemaRefusedError

METADATA = "_metadata.json"
PARTNER_EVENTS = "_partnerEvents.json"
GENERATION = "_generation.json"
DROPPING = "_dropping.json"
PROCESSED = "_ProcessedFiles"
READY_TO_DELETE = "_FilesReadyToDelete"
MOVED = (PROCESSED, READY_TO_DELETE)
"""Folders inside a table folder to which processed files are moved; the service deletes them there after seven days."""
OPENMIRROR = "_openmirror"
"""Folder at the zone's root for what belongs to no single table folder."""
ROW_MARKER = "__rowMarker__"
SCHEMA_SUFFIX = ".schema"
DEFAULT_SCHEMA = "dbo"
"""The schema in which a table lands whose folder names none."""

_DIGITS = 20
_DATA_FILE = re.compile(r"(\d{20})\.([A-Za-z0-9]+)")
_ADVANCE = re.compile(r"_(\d{20})\.advance-(\d+)\.json")
_CLAIM = re.compile(r"_(\d{20})\.claim-([0-9a-f]+)\.json")
_MAX_NAME = 255

Known = TypeVar("Known")


def data_file(number: int, extension: str = "parquet") -> str:
    """Return the name of data file ``number`` (1 is the first): 20 digits and the extension.

    >>> data_file(7)
    '00000000000000000007.parquet'
    """
    return f"{number:0{_DIGITS}d}.{extension}"


def data_number(name: str) -> int | None:
    """Return the number of a data file, None for any other name.

    >>> data_number("00000000000000000007.parquet"), data_number("_metadata.json")
    (7, None)
    """
    match = _DATA_FILE.fullmatch(name)
    return int(match[1]) if match else None


def advance_file(number: int, k: int) -> str:
    """Return the name of the ``k``-th advance record behind data file ``number``.

    >>> advance_file(7, 0)
    '_00000000000000000007.advance-0.json'
    """
    return f"_{number:0{_DIGITS}d}.advance-{k}.json"


def claim_file(first: int, digest: str) -> str:
    """Return the name of the mirror's claim on the batch that starts with file ``first``, whose identity hashes to ``digest``."""
    return f"_{first:0{_DIGITS}d}.claim-{digest}.json"


def drop_record(label: str) -> str:
    """Return the path, below the zone's root, of the note that a table was dropped on purpose.

    >>> drop_record("sales.orders")
    '_openmirror/dropped-sales.orders.json'
    """
    return f"{OPENMIRROR}/dropped-{label}.json"


@dataclass(frozen=True)
class Folder(Generic[Known]):
    """The names of one table folder, sorted into what they are; ``Known`` is what the listing tells of a file.

    Attributes:
        data: Data files by number.
        extensions: The extension of each data file.
        advances: Advance records: (number, k) to what is known.
        claims: The mirror's claims: name to what is known.
        special: ``_generation.json``, ``_dropping.json`` and ``_metadata.json``, those that stand there.
    """

    data: Mapping[int, Known]
    extensions: Mapping[int, str]
    advances: Mapping[tuple[int, int], Known]
    claims: Mapping[str, Known]
    special: Mapping[str, Known]

    @property
    def last(self) -> int:
        """The highest number of a data file, 0 if there is none."""
        return max(self.data, default=0)


def sort_names(names: Mapping[str, Known]) -> Folder[Known]:
    """Sort the files of one table folder; names that mean nothing to us are left out."""
    data: dict[int, Known] = {}
    extensions: dict[int, str] = {}
    advances: dict[tuple[int, int], Known] = {}
    claims: dict[str, Known] = {}
    special: dict[str, Known] = {}
    for name, known in names.items():
        if match := _DATA_FILE.fullmatch(name):
            data[int(match[1])] = known
            extensions[int(match[1])] = match[2]
        elif match := _ADVANCE.fullmatch(name):
            advances[int(match[1]), int(match[2])] = known
        elif _CLAIM.fullmatch(name):
            claims[name] = known
        elif name in {GENERATION, DROPPING, METADATA}:
            special[name] = known
    return Folder(data, extensions, advances, claims, special)


def table_folder(name: str, schema_name: str | None) -> str:
    """Return the folder of a table below the zone's root.

    >>> table_folder("orders", None), table_folder("orders", "sales")
    ('orders', 'sales.schema/orders')
    """
    return name if schema_name is None else f"{schema_name}{SCHEMA_SUFFIX}/{name}"


def table_label(name: str, schema_name: str | None) -> str:
    """Return how errors, reports and `replay` name a table: ``"orders"`` or ``"sales.orders"``."""
    return name if schema_name is None else f"{schema_name}.{name}"


def check_name(kind: str, name: str) -> None:
    r"""Refuse a table or schema name that cannot be a folder which the service discovers.

    Names beginning with ``_`` are ignored by its discovery; a trailing ``.schema`` makes a schema folder of a table.

    Args:
        kind: "table" or "schema", for the message.
        name: The name to look at.

    Raises:
        SchemaRefusedError: With the reason.

    >>> check_name("table", "orders")
    >>> check_name("table", "_orders")
    Traceback (most recent call last):
    ...
    openmirror_writer.errors.SchemaRefusedError: table name '_orders' begins with '_': the service ignores such a folder; choose another name [table='_orders']
    """
    reason = _name_fault(name)
    if reason:
        msg = f"{kind} name {name!r} {reason}; choose another name"
        raise SchemaRefusedError(msg, table=name if isinstance(name, str) else None)


def _name_fault(name: object) -> str | None:
    if not isinstance(name, str):
        return f"is {type(name).__name__}, not text"
    if not name.strip():
        return "is empty"
    if name.startswith("_"):
        return "begins with '_': the service ignores such a folder"
    if name in {".", ".."} or "/" in name or "\\" in name:
        return "holds a path"
    if name != name.strip() or name.endswith("."):
        return "begins or ends with white space, or ends with a dot"
    if name.lower().endswith(SCHEMA_SUFFIX):
        return f"ends with {SCHEMA_SUFFIX!r}, which makes a schema folder of it"
    bad = [c for c in name if not c.isprintable() or c in '"*:<>?|#%']
    if bad:
        return f"holds {bad[0]!r}, which no path may hold"
    if len(name.encode(errors="surrogatepass")) > _MAX_NAME:
        return f"is longer than {_MAX_NAME} bytes"
    return None


def case_twin(name: str, others: Iterable[str]) -> str | None:
    """Return the one of ``others`` that differs from ``name`` by case only, or None.

    >>> case_twin("Orders", ["orders", "items"])
    'orders'
    """
    return next((other for other in others if other != name and other.casefold() == name.casefold()), None)
