"""The JSON files of a landing zone: ``_metadata.json``, ``_partnerEvents.json`` and our own.

Property names are read in any casing and written as documented; properties that we do not know are kept. A property of
ours that is null counts as absent; one that stands there twice is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeVar

import pydantic_core
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from openmirror_writer.errors import ApplyError, SchemaRefusedError

SEQUENTIAL = "SequentialFileName"
BY_TIME = "LastUpdateTimeFileDetection"


class CopiedMistake(NamedTuple):
    """A mistake that stands in an example of the documents, and so in files of those who copied it.

    Attributes:
        pattern: Finds it in the text of a file; a match ends in its line.
        fault: What is wrong there.
        remedy: How to mend it.
    """

    pattern: re.Pattern[str]
    fault: str
    remedy: str


_COPIED_MISTAKES = (
    CopiedMistake(
        re.compile(r'"EscapeCharacter"\s*:\s*"\\"(?=\s*(?:[,}]|$))', re.IGNORECASE | re.MULTILINE),
        "a backslash before the closing quote, as an example of the documents has it",
        r'write "EscapeCharacter": "\\" (in JSON a backslash is written twice)',
    ),
    CopiedMistake(
        re.compile(rf'"fileDetectionStrategy"\s*:\s*"?(?:{SEQUENTIAL}|{BY_TIME})\b(?!")', re.IGNORECASE),
        "a value without quotes, as an example of the documents has it",
        'write the value of "fileDetectionStrategy" with quotes around it',
    ),
    CopiedMistake(
        re.compile("^[ \t]*[\u00a0\u2000-\u200a\u202f\u3000]", re.MULTILINE),
        "indented with a space that JSON does not know, as an example of the documents is",
        "indent with plain spaces (not with em spaces, U+2003, or their kin)",
    ),
)

Model = TypeVar("Model", bound=BaseModel)


class _AnyCasing(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow", populate_by_name=True)

    @model_validator(mode="before")
    @classmethod
    def _documented_casing(cls, data: Any) -> Any:  # noqa: ANN401 - whatever JSON holds
        if not isinstance(data, Mapping):
            return data
        documented = {str(field.alias).lower(): str(field.alias) for field in cls.model_fields.values()}
        properties: dict[str, Any] = {}
        for spelling, value in data.items():
            name = documented.get(str(spelling).lower(), str(spelling))
            if name in properties:
                raise ValueError(f"{name} stands there twice, in two spellings")
            properties[name] = value
        unknown = properties.keys() - documented.values()
        return {name: value for name, value in properties.items() if value is not None or name in unknown}


class ColumnDefinition(_AnyCasing):
    """One column of a `SchemaDefinition`.

    Attributes:
        name: Of the column.
        data_type: ``Double``, ``Single``, ``Int16``, ``Int32``, ``Int64``, ``DateTime``, ``IDate``, ``ITime``,
            ``String``, ``Boolean`` or ``ByteArray``; any text is read.
        is_nullable: None if it is absent, which means true.
    """

    name: str = Field(alias="Name")
    data_type: str = Field(alias="DataType")
    is_nullable: bool | None = Field(default=None, alias="IsNullable")


class SchemaDefinition(_AnyCasing):
    """The columns of delimited text; ``__rowMarker__`` is not listed.

    Attributes:
        columns: In the table's order.
    """

    columns: tuple[ColumnDefinition, ...] = Field(alias="Columns")


class FileFormatTypeProperties(_AnyCasing):
    r"""The options of delimited text. None: absent, the reader's default holds.

    Attributes:
        first_row_as_header: True; false is refused, as the first row is the header always.
        row_separator: ``\r\n``, ``\n`` or ``\r``; any text is read, here and below.
        column_separator: ``,``, ``;``, ``|`` or a tab.
        quote_character: ``"``, ``'`` or empty.
        escape_character: ``\``, ``/``, ``"`` or empty.
        null_value: The text that means NULL.
        encoding: The name of an encoding.
    """

    first_row_as_header: bool | None = Field(default=None, alias="FirstRowAsHeader")
    row_separator: str | None = Field(default=None, alias="RowSeparator")
    column_separator: str | None = Field(default=None, alias="ColumnSeparator")
    quote_character: str | None = Field(default=None, alias="QuoteCharacter")
    escape_character: str | None = Field(default=None, alias="EscapeCharacter")
    null_value: str | None = Field(default=None, alias="NullValue")
    encoding: str | None = Field(default=None, alias="Encoding")

    @field_validator("first_row_as_header")
    @classmethod
    def _header_always(cls, value: bool | None) -> bool | None:  # noqa: FBT001 - pydantic passes it so
        if value is False:
            raise ValueError("it must be true: the first row of a text file is its header always")
        return value


class TableMetadata(_AnyCasing):
    """``_metadata.json`` of a table folder.

    Attributes:
        key_columns: The columns that form the key; empty = none, then the table takes inserts only.
        file_detection_strategy: ``SequentialFileName`` (default) or ``LastUpdateTimeFileDetection``.
        is_upsert_default_row_marker: Whether rows without a marker are upserts; else they are inserts.
        conditional_update_column: Changes touch only stored rows with a smaller value in this column; never explained
            by the documents.
        schema_definition: The columns of delimited text; Parquet needs none.
        file_format: ``CSV`` or ``DelimitedText``; any text is read. None: CSV if there is a schema definition.
        file_extension: Of delimited text that is no CSV.
        file_format_type_properties: The options of delimited text.
    """

    key_columns: tuple[str, ...] = Field(default=(), alias="keyColumns")
    file_detection_strategy: Literal["SequentialFileName", "LastUpdateTimeFileDetection"] = Field(
        default="SequentialFileName", alias="fileDetectionStrategy"
    )
    is_upsert_default_row_marker: bool = Field(default=False, alias="isUpsertDefaultRowMarker")
    conditional_update_column: str | None = Field(default=None, alias="ConditionalUpdateColumn")
    schema_definition: SchemaDefinition | None = Field(default=None, alias="SchemaDefinition")
    file_format: str | None = Field(default=None, alias="FileFormat")
    file_extension: str | None = Field(default=None, alias="FileExtension")
    file_format_type_properties: FileFormatTypeProperties | None = Field(default=None, alias="FileFormatTypeProperties")

    def to_bytes(self) -> bytes:
        """Return the file's content, JSON in UTF-8: ``keyColumns`` always, the others where they are no default."""
        data = self.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        return _json({"keyColumns": list(self.key_columns), **data})


class SourceInfo(_AnyCasing):
    """What kind of source feeds the zone.

    Attributes:
        source_type: Any text, such as ``SQL``, ``Oracle``, ``Salesforce``.
        source_version: Any text.
        additional_information: Anything that JSON holds.
    """

    source_type: str = Field(alias="sourceType")
    source_version: str | None = Field(default=None, alias="sourceVersion")
    additional_information: dict[str, Any] | None = Field(default=None, alias="additionalInformation")


class PartnerEvents(_AnyCasing):
    """``_partnerEvents.json`` at the landing zone's root: who publishes, from which kind of source.

    Attributes:
        partner_name: The same for all mirrored databases of one organisation.
        source_info: The kind of source.

    >>> events = PartnerEvents(partner_name="testPartner", source_info=SourceInfo(source_type="SQL"))
    >>> events.to_bytes()
    b'{"partnerName":"testPartner","sourceInfo":{"sourceType":"SQL"}}'
    """

    partner_name: str = Field(alias="partnerName")
    source_info: SourceInfo = Field(alias="sourceInfo")

    def to_bytes(self) -> bytes:
        """Return the file's content, JSON in UTF-8, without what is None."""
        return _json(self.model_dump(mode="json", by_alias=True, exclude_none=True))


class Generation(BaseModel):
    """``_generation.json``: the id of this life of a table folder.

    Attributes:
        generation: A uuid; any text is read.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    generation: str = Field(min_length=1)

    def to_bytes(self) -> bytes:
        """Return the file's content, JSON in UTF-8."""
        return self.model_dump_json().encode()


class Dropped(BaseModel):
    """``_openmirror/dropped-<table>.json``: which lives of a table's folder were dropped on purpose.

    A mirror that was stopped meanwhile may hold any of them.

    Attributes:
        generation: The last one.
        earlier: Those before it.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    generation: str = Field(min_length=1)
    earlier: tuple[str, ...] = ()

    def holds(self, generation: str | None) -> bool:
        """Return whether that life was dropped on purpose."""
        return generation == self.generation or generation in self.earlier

    def to_bytes(self) -> bytes:
        """Return the file's content, JSON in UTF-8, without what is empty."""
        return self.model_dump_json(exclude_defaults=True).encode()


class Claim(BaseModel):
    """``_<number>.claim-<hash>.json``: the mirror's claim on the batch that begins with file ``<number>``.

    Attributes:
        last: Number of the last file of the batch.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    last: int = Field(ge=1)

    def to_bytes(self) -> bytes:
        """Return the file's content, JSON in UTF-8."""
        return self.model_dump_json().encode()


class Replacement(BaseModel):
    """``_openmirror/replacing-<table>.json``: a table is being replaced.

    Attributes:
        generation: The id of the life that is to end; None for a folder of another publisher.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    generation: str | None

    def to_bytes(self) -> bytes:
        """Return the file's content, JSON in UTF-8."""
        return self.model_dump_json().encode()


def parse(model: type[Model], data: bytes, *, file: str) -> Model:
    """Read one of the models above.

    Args:
        model: Which one.
        data: The file's bytes, JSON in UTF-8 (a byte order mark is skipped).
        file: Its path, for the error.

    Raises:
        SchemaRefusedError: It is not valid JSON or not of this form. Mistakes that stand in the documents' examples are
            named with their line and how to mend them.
    """
    try:
        return model.model_validate_json(data.removeprefix(b"\xef\xbb\xbf"), by_alias=True, by_name=False)
    except ValidationError as error:
        first: Any = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        fix = _mending(data) if first["type"] == "json_invalid" else None
        msg = f"{file} is not readable ({where + ': ' if where else ''}{first['msg']}): {fix or 'mend it by hand'}"
        raise SchemaRefusedError(msg, file=file) from error


def parse_claim(data: bytes, *, file: str) -> Claim:
    """Read a claim.

    Args:
        data: The file's bytes.
        file: Its path, for the error.

    Raises:
        ApplyError: It is damaged.
    """
    try:
        return Claim.model_validate_json(data)
    except ValidationError as error:
        msg = f"{file} does not say where a batch that was begun ends: if no mirror runs, drop_table and load again"
        raise ApplyError(msg, file=file) from error


def copied_mistakes(text: str) -> list[tuple[int, CopiedMistake]]:
    """Return which mistakes of the documents' examples stand in the text of a JSON file, each once, with its line.

    Args:
        text: Of a file that is not valid JSON.
    """
    found = [(match.end(), each) for each in _COPIED_MISTAKES if (match := each.pattern.search(text))]
    return [(text.count("\n", 0, end) + 1, mistake) for end, mistake in sorted(found, key=lambda one: one[0])]


def _mending(data: bytes) -> str | None:
    """Return line and remedy of the mistakes that stand in the documents' examples; None if there are none of them."""
    mistakes = copied_mistakes(data.decode(errors="replace"))
    return "; ".join(f"in line {line} {mistake.remedy}" for line, mistake in mistakes) or None


def _json(data: dict[str, Any]) -> bytes:
    return pydantic_core.to_json(data, inf_nan_mode="null")
