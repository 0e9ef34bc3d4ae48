"""Compressed text files: gzip and zstd, told by their first bytes.

The file names of compressed text and the form of Snappy are not documented. Snappy has three forms that differ: a raw
block, frames, and Hadoop's. Two of them have no first bytes of their own, the third needs a checksum (CRC-32C) that no
library here offers; text in Snappy is therefore refused, on both sides.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from typing import Literal, get_args

import pyarrow as pa

from openmirror_writer.errors import SchemaRefusedError, UnknownPositionError, shorten

TextCompression = Literal["none", "gzip", "zstd"]

_FIRST_BYTES: Mapping[bytes, Literal["gzip", "zstd"]] = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_SNAPPY_FRAMES = b"\xff\x06\x00\x00sNaPpY"


def check_compression(compression: object) -> None:
    """Refuse a compression that text does not have here.

    Raises:
        SchemaRefusedError: As said.
    """
    if compression == "snappy":
        msg = (
            "compression='snappy' has no documented form for text, and readers could not tell it; use gzip, or Parquet"
        )
        raise SchemaRefusedError(msg)
    if compression not in get_args(TextCompression):
        msg = (
            f"compression={shorten(compression)} is not one of text; use one of: {', '.join(get_args(TextCompression))}"
        )
        raise SchemaRefusedError(msg)


def compressed(text: bytes, compression: TextCompression) -> bytes:
    """Return the bytes of a file; the same text gives the same bytes.

    Args:
        text: Header and rows in the file's encoding.
        compression: How.

    Raises:
        SchemaRefusedError: Uncompressed text that begins as a compressed file does, which its header could.
    """
    if compression == "gzip":
        return gzip.compress(text, mtime=0)
    if compression == "zstd":
        return pa.Codec("zstd").compress(text, asbytes=True)
    if _compression_of(text) is not None or text.startswith(_SNAPPY_FRAMES):
        msg = "this header begins with the bytes of a compressed file; rename the first column, or use encoding='UTF-8'"
        raise SchemaRefusedError(msg)
    return text


def decompressed(data: bytes, path: str) -> bytes:
    """Return the text of a file, which is compressed or not: its first bytes tell.

    Args:
        data: The whole file.
        path: For errors.

    Raises:
        UnknownPositionError: It is damaged or cut off, or compressed with Snappy.
    """
    if data.startswith(_SNAPPY_FRAMES):
        msg = "this text file is compressed with Snappy, which is read in Parquet only: publish it again with gzip"
        raise UnknownPositionError(msg, file=path)
    compression = _compression_of(data)
    if compression is None:
        return data
    try:
        return pa.CompressedInputStream(pa.BufferReader(data), compression).read()
    except (OSError, pa.ArrowException) as error:
        msg = f"this {compression} file is damaged ({error}): delete it and publish it again under the same name"
        raise UnknownPositionError(msg, file=path) from error


def _compression_of(data: bytes) -> Literal["gzip", "zstd"] | None:
    return next((name for first, name in _FIRST_BYTES.items() if data.startswith(first)), None)
