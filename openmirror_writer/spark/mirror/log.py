"""What a Delta table says of itself, read from its ``_delta_log`` without Spark.

The newest ``.crc`` holds all that is needed; where it is missing, the commits are read from the newest on, down to one
that tells, or to a complete checkpoint. "The log tells nothing of us" and "the log is not complete" are different
answers: the second is an error, for applying files again would double their rows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from openmirror_writer.errors import ApplyError
from openmirror_writer.spark.mirror.columns import Column
from openmirror_writer.spark.mirror.state import TargetState
from openmirror_writer.storage import Listing, Steps, deleting, listing, reading, removing

APP_ID = "openmirror"
"""The one application id of all our commits."""
GENERATION_PROPERTY = "openmirror.generation"
FOLDER_PROPERTY = "openmirror.folder"
KEYS_PROPERTY = "openmirror.keys"
LATER_KEYS_PROPERTY = "openmirror.laterKeys"
"""JSON of the key columns that came after the table was made, and the generation they belong to: Delta does not fence
the statement that sets them, and one that comes late must not tell anything of the next life."""
REQUIRED_PROPERTY = "openmirror.required"
"""JSON list of the columns that files declare as required; Delta columns made by AS SELECT are nullable."""
DROPPED_PROPERTY = "openmirror.dropped"

_LOG = "_delta_log"
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKSUM = re.compile(r"(\d{20})\.crc")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.([0-9a-f-]{36}))?\.(parquet|json)")
_PART = re.compile(r"(\d{20})\.checkpoint\.(\d{10})\.(\d{10})\.parquet")
_LOOKS = 5


@dataclass(frozen=True)
class LogNames:
    """The names in a ``_delta_log``, sorted.

    Attributes:
        commits: Versions.
        checksums: Versions.
        checkpoints: Version to the names of a complete checkpoint; all that are needed to read it.
    """

    commits: frozenset[int]
    checksums: frozenset[int]
    checkpoints: Mapping[int, Sequence[str]]

    @property
    def newest(self) -> int | None:
        """The newest version; None if there is no table."""
        return max(self.commits | self.checkpoints.keys(), default=None)


def sort_log(names: Iterable[str]) -> LogNames:
    """Sort the names of a ``_delta_log``; parts of a checkpoint that is not complete are left out."""
    commits: set[int] = set()
    checksums: set[int] = set()
    checkpoints: dict[int, list[str]] = {}
    parts: dict[tuple[int, int], dict[int, str]] = {}
    for name in names:
        if match := _COMMIT.fullmatch(name):
            commits.add(int(match[1]))
        elif match := _CHECKSUM.fullmatch(name):
            checksums.add(int(match[1]))
        elif match := _CHECKPOINT.fullmatch(name):
            checkpoints.setdefault(int(match[1]), [name])
        elif match := _PART.fullmatch(name):
            parts.setdefault((int(match[1]), int(match[3])), {})[int(match[2])] = name
    for (version, count), found in parts.items():
        if len(found) == count:
            checkpoints.setdefault(version, [found[n] for n in sorted(found)])
    return LogNames(frozenset(commits), frozenset(checksums), checkpoints)


@dataclass(frozen=True)
class LogPart:
    """What one file of the log tells: our version and the table's metadata, None where it is silent.

    Attributes:
        version: Of our application id.
        metadata: The ``metaData`` action.
        complete: Whether the file tells all, so that silence means that there is none.
    """

    version: int | None = None
    metadata: dict[str, Any] | None = None
    complete: bool = False

    def over(self, older: LogPart) -> LogPart:
        """Return what both tell, this one being the newer."""
        return LogPart(
            older.version if self.version is None else self.version,
            older.metadata if self.metadata is None else self.metadata,
            self.complete or older.complete,
        )

    @property
    def enough(self) -> bool:
        """Whether older files can add nothing."""
        return self.complete or (self.version is not None and self.metadata is not None)


def read_target(folder: str) -> Steps[TargetState]:
    """Read the state of a Delta table; the requests go to the target's storage.

    Args:
        folder: The table's directory below the target's root.

    Raises:
        ApplyError: The log is not complete or not readable.
    """
    for _ in range(_LOOKS):
        names = sort_log((yield from listing(f"{folder}/{_LOG}")).files)
        if names.newest is None:
            return TargetState()
        found = yield from _read_log(f"{folder}/{_LOG}", names)
        if found is not None:
            return target_state(found, names.newest)
    msg = f"the log of the Delta table {folder} changes all the time: run the mirror again"
    raise ApplyError(msg, file=f"{folder}/{_LOG}")


def _read_log(log: str, names: LogNames) -> Steps[LogPart | None]:
    """Read from the newest version down; None if a file went away since the listing."""
    told = LogPart()
    version = names.newest or 0
    while version >= 0 and not told.enough:
        if version in names.checksums:
            content = yield from reading(f"{log}/{version:020d}.crc")
            part = None if content is None else parse_checksum(content.data)
            if part is not None:
                return told.over(part)
        if version in names.checkpoints:
            part = yield from _read_checkpoint(log, names.checkpoints[version])
            return None if part is None else told.over(part)
        if version not in names.commits:
            msg = (
                f"the log of this Delta table is not complete: version {version} is missing, and no checkpoint stands "
                "for it. Restore the log; nothing is applied before it is complete"
            )
            raise ApplyError(msg, file=f"{log}/{version:020d}.json")
        content = yield from reading(f"{log}/{version:020d}.json")
        if content is None:
            return None
        told = told.over(parse_commit(content.data, file=f"{log}/{version:020d}.json"))
        version -= 1
    return told


def _read_checkpoint(log: str, names: Sequence[str]) -> Steps[LogPart | None]:
    told = LogPart(complete=True)
    for name in names:
        content = yield from reading(f"{log}/{name}")
        if content is None:
            return None
        if name.endswith(".json"):
            told = told.over(parse_commit(content.data, file=f"{log}/{name}"))
        else:
            told = told.over(parse_checkpoint(content.data, file=f"{log}/{name}"))
    return told


def parse_commit(data: bytes, *, file: str) -> LogPart:
    """Read a commit, or a v2 checkpoint in JSON: one action a line.

    Raises:
        ApplyError: It is damaged.
    """
    try:
        return _of_actions(json.loads(line) for line in data.splitlines() if line.strip())
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        msg = f"this file of the Delta log is damaged ({error}): restore it; nothing is applied before it is readable"
        raise ApplyError(msg, file=file) from error


def parse_checkpoint(data: bytes, *, file: str) -> LogPart:
    """Read a checkpoint, or one part of it, in Parquet.

    Raises:
        ApplyError: It is damaged.
    """
    try:
        source = pq.ParquetFile(pa.BufferReader(data))
        wanted = [name for name in ("txn", "metaData") if name in source.schema_arrow.names]
        rows = source.read(columns=wanted).to_pylist() if wanted else []
    except (pa.ArrowException, OSError) as error:
        msg = f"this checkpoint of the Delta log is damaged ({error}): restore it"
        raise ApplyError(msg, file=file) from error
    return _of_actions(rows)


def parse_checksum(data: bytes) -> LogPart | None:
    """Read a ``.crc``; None if it does not tell all that is needed, which is allowed."""
    try:
        content = json.loads(data)
        metadata, transactions = content["metadata"], content["setTransactions"]
        found = _of_actions([{"metaData": metadata}, *({"txn": t} for t in transactions)])
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return LogPart(found.version, found.metadata, complete=True)


def _of_actions(actions: Iterable[Mapping[str, Any]]) -> LogPart:
    version: int | None = None
    metadata: dict[str, Any] | None = None
    for action in actions:
        if (txn := action.get("txn")) and txn["appId"] == APP_ID:
            version = int(txn["version"])
        if found := action.get("metaData"):
            metadata = {"schemaString": found["schemaString"], "configuration": dict(found["configuration"] or ())}
    return LogPart(version, metadata)


def target_state(told: LogPart, commit: int) -> TargetState:
    """Turn what a log tells into the state of the table.

    Args:
        told: Our version and the metadata.
        commit: Delta's newest version.
    """
    metadata = told.metadata or {"schemaString": '{"fields": []}', "configuration": {}}
    properties: Mapping[str, str] = metadata["configuration"]
    required = set(json.loads(properties.get(REQUIRED_PROPERTY, "[]")))
    dropped = properties.get(DROPPED_PROPERTY)
    fields = json.loads(metadata["schemaString"])["fields"]
    return TargetState(
        exists=True,
        version=told.version,
        generation=properties.get(GENERATION_PROPERTY),
        dropped=None if dropped is None else datetime.fromisoformat(dropped),
        columns=tuple(Column(f["name"], _type_text(f["type"]), f["name"] not in required) for f in fields),
        keys=_keys(properties),
        folder=properties.get(FOLDER_PROPERTY),
        commit=commit,
    )


def _keys(properties: Mapping[str, str]) -> tuple[str, ...]:
    later = json.loads(properties.get(LATER_KEYS_PROPERTY, "{}"))
    if later and later["generation"] == properties.get(GENERATION_PROPERTY):
        return tuple(later["keys"])
    return tuple(json.loads(properties.get(KEYS_PROPERTY, "[]")))


def _type_text(kind: object) -> str:
    return kind if isinstance(kind, str) else json.dumps(kind)


def remove_table(folder: str, version: int) -> Steps[None]:
    """Remove the directory of a dropped table, if it still says so; the requests go to the target's storage.

    The log goes last, and its newest version at the very end, so that what a crash leaves still reads as dropped.

    Args:
        folder: The table's directory.
        version: Our packed version of the drop.

    Raises:
        ApplyError: As `read_target`.
    """
    state = yield from read_target(folder)
    if state.dropped is None or state.version != version:
        return
    yield from _empty(folder, keep=_LOG)
    log = f"{folder}/{_LOG}"
    inside = yield from listing(log)
    for name in inside.folders:
        yield from _empty(f"{log}/{name}")
    for name in _newest_last(inside):
        yield from deleting(f"{log}/{name}", inside.files[name].identity)
    yield from removing(folder)


def _newest_last(log: Listing) -> list[str]:
    numbered = sorted(name for name in log.files if name[:20].isdigit())
    return [name for name in log.files if not name[:20].isdigit()] + numbered


def _empty(folder: str, keep: str | None = None) -> Steps[None]:
    inside = yield from listing(folder)
    for name, entry in inside.files.items():
        yield from deleting(f"{folder}/{name}", entry.identity)
    for name in inside.folders:
        if name != keep:
            yield from _empty(f"{folder}/{name}")
