"""JSON files as people write them: properties in any casing, and the line where they are broken. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from openmirror_writer.check.findings import Finding
from openmirror_writer.metadata import copied_mistakes


@dataclass(frozen=True)
class JsonObject:
    """A JSON object whose names are read in any casing.

    Attributes:
        values: Name in lower case to value; a name that stands there twice has its last value, null is left out.
        repeated: Names in lower case that stand there twice.
    """

    values: Mapping[str, Any]
    repeated: tuple[str, ...]

    def get(self, name: str) -> Any:  # noqa: ANN401 - whatever JSON holds
        """Return the value of a property, None if it is absent or null."""
        return self.values.get(name.lower())


def read_object(data: bytes, rule: str) -> JsonObject | list[Finding]:
    """Read a JSON file that must hold one object.

    Args:
        data: The file's bytes; a byte order mark is skipped.
        rule: The rule that is broken where it is not valid.

    Returns:
        The findings if it is not readable: one, or one for each of the documents' mistakes that was copied.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"byte {error.start} is not UTF-8"
        return [Finding("error", rule, message, "save it in UTF-8", line=data.count(b"\n", 0, error.start) + 1)]
    try:
        value = json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        return _copied(text, rule) or [
            Finding("error", rule, f"line {error.lineno} is no valid JSON: {error.msg}", "mend it", line=error.lineno)
        ]
    except (ValueError, RecursionError) as error:
        return [Finding("error", rule, f"the JSON cannot be read: {error}", "mend it")]
    if isinstance(value, JsonObject):
        return value
    return [Finding("error", rule, "the file holds no JSON object", "write properties between braces")]


def _object(pairs: list[tuple[str, Any]]) -> JsonObject:
    counts = Counter(name.lower() for name, _ in pairs)
    values = {name.lower(): value for name, value in pairs if value is not None}
    return JsonObject(values, tuple(name for name, count in counts.items() if count > 1))


def _copied(text: str, rule: str) -> list[Finding]:
    return [
        Finding("error", rule, f"line {line} has {mistake.fault}", mistake.remedy, line=line)
        for line, mistake in copied_mistakes(text)
    ]
