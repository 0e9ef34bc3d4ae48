"""Names of folders and files in a landing zone. Pure; the rules are those of the landing zone's documentation.

A table folder holds numbered data files, ``_metadata.json`` and files of ours that begin with ``_``, which
the service's discovery ignores.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from openmirror_writer.errors import ConcurrentWriterError, SchemaRefusedError, shorten

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
SCHEMA_SUFFIX = ".schema"
DEFAULT_SCHEMA = "dbo"
"""The schema in which a table lands whose folder names none."""

_DIGITS = 20
_DATA_FILE = re.compile(r"(?!0{20})([0-9]{20})\.([A-Za-z0-9]+)")  # not \d: it matches the digits of every script
_ADVANCE = re.compile(r"_([0-9]{20})\.advance-([0-9]+)\.json")
_CLAIM = re.compile(r"_([0-9]{20})\.claim-([0-9a-f]+)\.json")
_SIDECAR = re.compile(r"_([0-9]{20})\.([0-9a-f]{64})\.[0-9a-f-]+\.json")
_STAGED = re.compile(r"_.*\.[0-9a-f]{32}\.staged")
_MAX_NAME = 255
"""Bytes of a folder's or file's name on the file systems of our day."""

Known = TypeVar("Known")


def data_file(number: int, extension: str = "parquet") -> str:
    """Return the name of data file ``number`` (1 is the first): 20 digits and the extension.

    >>> data_file(7)
    '00000000000000000007.parquet'
    """
    return f"{number:0{_DIGITS}d}.{extension}"


def data_number(name: str) -> int | None:
    """Return the number of a data file, None for any other name; the first number is 1.

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


def is_staged(name: str) -> bool:
    """Return whether a name is that of a temporary file."""
    return _STAGED.fullmatch(name) is not None


def claim_file(first: int, digest: str) -> str:
    """Return the name of the mirror's claim on the batch that starts with file ``first``.

    Args:
        first: Number of the batch's first file.
        digest: Hash of that file's identity, hexadecimal.
    """
    return f"_{first:0{_DIGITS}d}.claim-{digest}.json"


def sidecar_file(number: int, sha256: str, batch: str) -> str:
    """Return the name of the record that stands beside a text file.

    Args:
        number: Of the text file.
        sha256: Of its content, hexadecimal.
        batch: The batch id in the record.
    """
    return f"_{number:0{_DIGITS}d}.{sha256}.{batch}.json"


def drop_record(label: str) -> str:
    """Return the path, below the zone's root, of the note that a table was dropped on purpose.

    Args:
        label: From `table_label`; one that is too long for a file's name stands in it as its hash.

    >>> drop_record("sales.orders")
    '_openmirror/dropped-sales.orders.json'
    """
    return _note("dropped", label)


def replacement_record(label: str) -> str:
    """Return the path, below the zone's root, of the note that a table is being replaced.

    Args:
        label: See `drop_record`.

    >>> replacement_record("sales.orders")
    '_openmirror/replacing-sales.orders.json'
    """
    return _note("replacing", label)


def _note(what: str, label: str) -> str:
    name = f"{what}-{label}.json"
    if _length(name) > _MAX_NAME:
        name = f"{what}-{hashlib.sha256(label.encode(errors='surrogatepass')).hexdigest()}.json"
    return f"{OPENMIRROR}/{name}"


@dataclass(frozen=True)
class Folder(Generic[Known]):
    """The names of one table folder, sorted into what they are; ``Known`` is what the listing tells of a file.

    Attributes:
        data: Data files by number.
        extensions: The extension of each data file.
        advances: Advance records: (number, k) to what is known.
        claims: The mirror's claims: name to what is known.
        sidecars: Records of text files: (number, sha256 of the file's content) to name to what is known, by name.
        special: ``_generation.json``, ``_dropping.json`` and ``_metadata.json``, those that stand there.
        staged: Temporary files, of a create under way or of a killed process: name to what is known.
    """

    data: Mapping[int, Known]
    extensions: Mapping[int, str]
    advances: Mapping[tuple[int, int], Known]
    claims: Mapping[str, Known]
    sidecars: Mapping[tuple[int, str], Mapping[str, Known]]
    special: Mapping[str, Known]
    staged: Mapping[str, Known]

    @property
    def last(self) -> int:
        """The highest number of a data file, 0 if there is none."""
        return max(self.data, default=0)

    def known(self) -> Iterator[Known]:
        """Yield what is known of each file."""
        yield from self.data.values()
        yield from self.advances.values()
        for files in (self.claims, self.special, self.staged, *self.sidecars.values()):
            yield from files.values()


def sort_names(names: Mapping[str, Known]) -> Folder[Known]:
    """Sort the files of one table folder; names that mean nothing to us are left out.

    Args:
        names: Each file's name, to what the listing tells of it.

    Raises:
        ConcurrentWriterError: Two data files have the same number (``1.parquet`` and ``1.csv``): which of them counts
            nobody can tell.
    """
    data: dict[int, Known] = {}
    extensions: dict[int, str] = {}
    advances: dict[tuple[int, int], Known] = {}
    claims: dict[str, Known] = {}
    sidecars: dict[tuple[int, str], dict[str, Known]] = {}
    special: dict[str, Known] = {}
    staged: dict[str, Known] = {}
    for name, known in sorted(names.items()):
        if match := _DATA_FILE.fullmatch(name):
            number = int(match[1])
            if number in data:
                twins = " and ".join(sorted((data_file(number, extensions[number]), name)))
                msg = f"two data files have one number: stop the other writer of this table, then delete one of {twins}"
                raise ConcurrentWriterError(msg, file=name)
            data[number] = known
            extensions[number] = match[2]
        elif match := _ADVANCE.fullmatch(name):
            advances[int(match[1]), int(match[2])] = known
        elif _CLAIM.fullmatch(name):
            claims[name] = known
        elif match := _SIDECAR.fullmatch(name):
            sidecars.setdefault((int(match[1]), match[2]), {})[name] = known
        elif name in {GENERATION, DROPPING, METADATA}:
            special[name] = known
        elif is_staged(name):
            staged[name] = known
    return Folder(data, extensions, advances, claims, sidecars, special, staged)


def table_folder(name: str, schema_name: str | None, suffix: str = SCHEMA_SUFFIX) -> str:
    """Return the folder of a table below the zone's root.

    Args:
        name: Of the table.
        schema_name: Its schema; None: the default one.
        suffix: Of the schema's folder where it is spelled otherwise, see `schema_of`.

    >>> table_folder("orders", None), table_folder("orders", "sales")
    ('orders', 'sales.schema/orders')
    """
    return name if schema_name is None else f"{schema_name}{suffix}/{name}"


def schema_of(folder: str) -> tuple[str, str] | None:
    """Return whose tables a folder at the zone's root holds: the schema's name, and the suffix as it is spelled.

    The suffix is read in any casing, and written as documented.

    Args:
        folder: Its name.

    Returns:
        None if the folder is a table's, or ignored because it begins with ``_``.

    >>> schema_of("sales.schema"), schema_of("sales.Schema"), schema_of("orders"), schema_of("_x.schema")
    (('sales', '.schema'), ('sales', '.Schema'), None, None)
    """
    if folder.startswith("_") or not folder.lower().endswith(SCHEMA_SUFFIX):
        return None
    return folder[: -len(SCHEMA_SUFFIX)], folder[-len(SCHEMA_SUFFIX) :]


def table_label(name: str, schema_name: str | None) -> str:
    """Return how errors, reports and `replay` name a table: ``"orders"`` or ``"sales.orders"``.

    A part that holds a dot stands in backticks, as in SQL, so that no two tables have one label.

    >>> table_label("orders", None), table_label("orders", "sales"), table_label("sales.orders", None)
    ('orders', 'sales.orders', '`sales.orders`')
    """
    return _quoted(name) if schema_name is None else f"{_quoted(schema_name)}.{_quoted(name)}"


def check_name(kind: str, name: str) -> None:
    r"""Refuse a table or schema name that cannot be a folder which the service discovers.

    Names beginning with ``_`` are ignored by its discovery; a trailing ``.schema`` makes a schema folder of a table.

    Args:
        kind: "table" or "schema", for the message.
        name: The name to look at.

    Raises:
        SchemaRefusedError: With the reason.

    >>> check_name("table", "orders")
    >>> check_name("table", "_orders")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    openmirror_writer.errors.SchemaRefusedError: table name '_orders' begins with '_': the service ignores...
    """
    reason = _name_fault(name, _MAX_NAME - (len(SCHEMA_SUFFIX) if kind == "schema" else 0))
    if reason:
        msg = f"{kind} name {shorten(name)} {reason}; choose another name"
        raise SchemaRefusedError(msg, table=name if kind == "table" else None)


def _name_fault(name: object, most: int) -> str | None:
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
    if _length(name) > most:
        return f"is longer than {most} bytes"
    return None


def _length(name: str) -> int:
    return len(name.encode(errors="surrogatepass"))


def _quoted(part: str) -> str:
    return "`" + part.replace("`", "``") + "`" if "." in part or "`" in part else part


def case_twin(name: str, others: Iterable[str]) -> str | None:
    """Return the one of ``others`` that differs from ``name`` by case only, or None.

    >>> case_twin("Orders", ["orders", "items"])
    'orders'
    """
    return next((other for other in others if other != name and other.casefold() == name.casefold()), None)
