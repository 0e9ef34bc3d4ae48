"""JSON files as people write them: properties in any casing, and the line where they are broken. Pure."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from openmirror_writer.check.findings import Finding

_DOCUMENTED_MISTAKES = (
    (
        re.compile(r'"\s*:\s*"\\"\s*[,}\n]'),
        "a backslash before the closing quote, as an example of the documents has it",
        r'write "\\" for one backslash',
    ),
    (
        re.compile(r":\s*(LastUpdateTimeFileDetection|SequentialFileName)\b"),
        "a value without quotes, as an example of the documents has it",
        "put quotes around it",
    ),
    (
        re.compile(r"^[ \t]*[\u00a0\u2000-\u200a\u202f\u3000]", re.MULTILINE),
        "indented with a space that JSON does not know, as an example of the documents is",
        "indent with ordinary spaces",
    ),
)


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
        return _mistakes(text, rule) or [
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


def _mistakes(text: str, rule: str) -> list[Finding]:
    found: list[Finding] = []
    for pattern, fault, remedy in _DOCUMENTED_MISTAKES:
        if match := pattern.search(text):
            end = match.end() - 1 if match.group().endswith("\n") else match.end()
            line = text.count("\n", 0, end) + 1
            found.append(Finding("error", rule, f"line {line} has {fault}", remedy, line=line))
    return found
