"""Rules of the zone's root and of its schema folders. Pure, over their listings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from openmirror_writer.check.findings import Finding
from openmirror_writer.errors import SchemaRefusedError
from openmirror_writer.layout import (
    DEFAULT_SCHEMA,
    METADATA,
    OPENMIRROR,
    PARTNER_EVENTS,
    SCHEMA_SUFFIX,
    check_name,
    data_number,
    schema_of,
    table_label,
)
from openmirror_writer.storage import Listing

_RESERVED = frozenset({OPENMIRROR, "_scratchPad"})
_MOST_TABLES = 1000


@dataclass(frozen=True)
class TableFolder:
    """A folder that discovery takes for a table.

    Attributes:
        folder: Its path below the zone's root.
        name: The table's name.
        schema: As the folder above spells it; None at the root.
    """

    folder: str
    name: str
    schema: str | None

    @property
    def label(self) -> str:
        """``"orders"`` or ``"sales.orders"``."""
        return table_label(self.name, self.schema)

    @property
    def target(self) -> tuple[str, str]:
        """Schema and name where it lands, which do not tell case apart."""
        return (self.schema or DEFAULT_SCHEMA).casefold(), self.name.casefold()


def table_folders(listings: Mapping[str, Listing]) -> list[TableFolder]:
    """Return the folders that discovery takes for tables: those at the root, then by schema.

    Args:
        listings: Of the root (``""``) and of the folders in it.
    """
    folders = _seen_folders(listings[""])
    found = [TableFolder(folder, folder, None) for folder in folders if schema_of(folder) is None]
    for folder in folders:
        if (schema := schema_of(folder)) is not None:
            found += [TableFolder(f"{folder}/{name}", name, schema[0]) for name in _seen_folders(listings[folder])]
    return found


def root_findings(listings: Mapping[str, Listing]) -> Iterator[Finding]:
    """Yield what is wrong with the names at the zone's root and in its schema folders.

    Args:
        listings: As above.
    """
    tables = table_folders(listings)
    schemas = {folder: found for folder in _seen_folders(listings[""]) if (found := schema_of(folder)) is not None}
    yield from _place_findings(listings, schemas)
    yield from _ignored_findings(listings)
    for folder, (schema, suffix) in schemas.items():
        yield from _schema_name_findings(folder, schema, suffix)
    for table in tables:
        yield from _name_findings("table", table.name, table.folder, table.label)
    yield from _twin_findings(schemas, tables)
    yield from count_findings(len(tables))


def count_findings(tables: int) -> Iterator[Finding]:
    """Yield that a mirrored database does not take so many tables."""
    if tables > _MOST_TABLES:
        message = f"there are {tables} tables, and a mirrored database takes {_MOST_TABLES}"
        yield Finding("error", "9.1", message, "spread them over several mirrored databases")


def _seen_folders(listing: Listing) -> list[str]:
    return sorted(name for name in listing.folders if not name.startswith("_"))


def _place_findings(listings: Mapping[str, Listing], schemas: Iterable[str]) -> Iterator[Finding]:
    for folder in ("", *schemas):
        for name in sorted(listings[folder].files):
            path = f"{folder}/{name}" if folder else name
            if not folder and name != PARTNER_EVENTS and name.lower() == PARTNER_EVENTS.lower():
                yield Finding(
                    "warning", "3.1", f"{name} is spelled otherwise than {PARTNER_EVENTS}", "rename it", file=path
                )
            elif name == METADATA or not name.startswith("_"):
                message = "a file that lies in no table's folder is ignored"
                yield Finding("warning", "1.4", message, "move it to its table's folder, or delete it", file=path)


def _ignored_findings(listings: Mapping[str, Listing]) -> Iterator[Finding]:
    for folder, inside in listings.items():
        name = folder.rpartition("/")[2]
        holds_table = METADATA in inside.files or any(data_number(file) is not None for file in inside.files)
        if name.startswith("_") and name not in _RESERVED and holds_table:
            message = "a folder whose name begins with _ is ignored: the table in it is not mirrored"
            yield Finding("warning", "1.3", message, "rename it, or delete it", file=folder)


def _schema_name_findings(folder: str, schema: str, suffix: str) -> Iterator[Finding]:
    if suffix != SCHEMA_SUFFIX:
        message = f"the suffix of a schema's folder is written {SCHEMA_SUFFIX}"
        yield Finding("warning", "1.2", message, f"name it {schema}{SCHEMA_SUFFIX}", file=folder)
    yield from _name_findings("schema", schema, folder, None)


def _name_findings(kind: str, name: str, folder: str, label: str | None) -> Iterator[Finding]:
    try:
        check_name(kind, name)
    except SchemaRefusedError as error:
        message, _, remedy = error.message.rpartition("; ")
        yield Finding("error", "1.1", message, remedy, table=label, file=folder)


def _twin_findings(schemas: Iterable[str], tables: Iterable[TableFolder]) -> Iterator[Finding]:
    spelled: dict[str, str] = {}
    for folder in schemas:
        first = spelled.setdefault(folder.casefold(), folder)
        if first != folder:
            message = f"the folder differs from {first} by case only, and both are one schema"
            yield Finding("error", "1.1", message, "move its tables into the other", file=folder)
    places: dict[tuple[str, str], TableFolder] = {}
    for table in tables:
        first_there = places.setdefault(table.target, table)
        if first_there is table:
            continue
        message = f"the folder lands in the same table as {first_there.folder}"
        rule = "1.1" if (table.schema is None) == (first_there.schema is None) else "1.2"
        yield Finding("error", rule, message, "rename one of the two", table=table.label, file=table.folder)
