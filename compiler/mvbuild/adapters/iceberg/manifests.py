"""manifest lists and manifests -> FileEntry: what lists one file, with its bytes; FileEntries -> a manifest that lists only them.

Entries are copied byte for byte. PyIceberg writes neither format 3 nor specs whose column was dropped, and would lose fields that it does
not know.
"""

from __future__ import annotations

import json
import math
from functools import lru_cache
from io import BytesIO
from typing import TYPE_CHECKING, Any

from mvbuild.adapters.iceberg.private_pyiceberg import inheritance, values_of
from mvbuild.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyiceberg.io import FileIO
    from pyiceberg.manifest import DataFile, ManifestEntry, ManifestFile
    from pyiceberg.schema import Schema

NAN = float("nan")
"""A NaN in a partition: one object, so that it equals itself, as in Java."""
_SYNC = 16
_EXISTING = b"\x00"
_NULL, _SOME = b"\x00", b"\x02"
"""The branches of Avro's union of null and a value."""
_STATUS, _SNAPSHOT, _SEQUENCE, _FILE_SEQUENCE = 0, 1, 3, 4
"""Field ids that a copy of a manifest entry must contain, because it cannot inherit them any more."""


@dataclass(frozen=True, slots=True, eq=False)
class Header:
    """The writer's schema and the metadata of a manifest."""

    meta: dict[str, str]
    schema: Schema
    spec_id: int


_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True, slots=True, eq=False)
class FileEntry:
    """A live file of a manifest."""

    entry: ManifestEntry
    """The entry, including what it inherits from its manifest."""
    content: bytes
    """The bytes of the record in the manifest."""
    header: Header

    @property
    def file(self) -> DataFile:
        return self.entry.data_file

    @property
    def path(self) -> str:
        return self.entry.data_file.file_path

    @property
    def spec_id(self) -> int:
        return self.header.spec_id

    @property
    def sequence_number(self) -> int:
        """The data sequence number: a delete applies to files with its own number or a lower one."""
        return self.entry.sequence_number or 0

    @property
    def partition(self) -> tuple[Any, ...]:
        """The partition, comparable with that of another file."""
        return tuple(
            NAN if isinstance(value, float) and math.isnan(value) else value for value in values_of(self.entry.data_file.partition)
        )

    @property
    def has_replaced_text(self) -> bool:
        """Whether the partition has a text in which bytes that are not valid UTF-8 may have been replaced. Engines read it in place of the
        text in the file."""
        return any(isinstance(value, str) and _REPLACEMENT in value for value in self.partition)

    @property
    def is_equality(self) -> bool:
        """Whether it is an equality delete file."""
        from pyiceberg.manifest import DataFileContent

        return bool(self.file.content == DataFileContent.EQUALITY_DELETES)

    @property
    def is_global(self) -> bool:
        """Whether an equality delete applies to all partitions: that of a spec without fields, or with only void transforms, which has no
        values. Fields with values may have none either; then it applies to fewer files."""
        return all(value is None for value in self.partition)

    @property
    def referenced(self) -> str | None:
        """The one data file that a delete file refers to."""
        found: str | None = self.entry.data_file[17]
        return found

    @property
    def vector(self) -> tuple[int, int] | None:
        """The location of a deletion vector in its file."""
        offset, size = self.entry.data_file[18], self.entry.data_file[19]
        return None if offset is None else (offset, size)

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for entries of two snapshots that are the same file with the same meaning."""
        return (self.path, self.vector, self.sequence_number)


def read_manifests(io: FileIO, manifest_list: str) -> list[ManifestFile]:
    with io.new_input(manifest_list).open() as stream:
        data = stream.read()
    return [manifest for manifest, _ in _Avro(data).records(_reader_of_list)]


def read_entries(io: FileIO, manifest: ManifestFile) -> list[FileEntry]:
    """Read the live files of a manifest."""
    from pyiceberg.manifest import ManifestEntryStatus

    with io.new_input(manifest.manifest_path).open() as stream:
        avro = _Avro(stream.read())
    header, inherited = Header(avro.meta, _schema_of(avro.schema), manifest.partition_spec_id), inheritance()
    return [
        FileEntry(inherited(entry, manifest), content, header)
        for entry, content in avro.records(_reader_of_entries)
        if entry.status != ManifestEntryStatus.DELETED
    ]


def write_entries(io: FileIO, location: str, entries: Sequence[FileEntry], snapshot_id: int, sequence_number: int) -> ManifestFile:
    """Write a manifest of data files, all with one `header`."""
    from pyiceberg.manifest import ManifestContent, ManifestFile

    readers = _field_readers(entries[0].header)
    content = _container(entries[0].header, [_spelled_out(entry, readers) for entry in entries])
    with io.new_output(location).create() as stream:
        stream.write(content)
    # An entry without a number, as format 1 writes it, has number 0 if its manifest has.
    numbered = any(field.field_id == _SEQUENCE for field in entries[0].header.schema.fields)
    return ManifestFile.from_args(
        manifest_path=location,
        manifest_length=len(content),
        partition_spec_id=entries[0].spec_id,
        content=ManifestContent.DATA,
        sequence_number=sequence_number if numbered else 0,
        min_sequence_number=min(entry.sequence_number for entry in entries) if numbered else 0,
        added_snapshot_id=snapshot_id,
        added_files_count=0,
        existing_files_count=len(entries),
        deleted_files_count=0,
        added_rows_count=0,
        existing_rows_count=sum(entry.file.record_count for entry in entries),
        deleted_rows_count=0,
    )


def by_header(entries: Iterable[FileEntry]) -> list[list[FileEntry]]:
    """Group entries that one manifest can contain: those of one spec, written with one schema."""
    found: dict[tuple[int, str], list[FileEntry]] = {}
    for entry in entries:
        found.setdefault((entry.spec_id, entry.header.meta["avro.schema"]), []).append(entry)
    return list(found.values())


class _Avro:
    """An Avro file. PyIceberg's own class makes a reader for each file, which takes longer than reading a few entries."""

    def __init__(self, data: bytes) -> None:
        from pyiceberg.avro.decoder import new_decoder

        self._decoder, self._size = new_decoder(data), len(data)
        self._head = _reader_of_head().read(self._decoder)
        self.meta: dict[str, str] = self._head.meta

    @property
    def schema(self) -> str:
        """Raises ValueError if the file has none."""
        found = self.meta.get("avro.schema")
        if found is None:
            raise ValueError("An Avro file without a schema.")
        return found

    def records(self, reader_of: Callable[[str], Any]) -> Iterator[tuple[Any, bytes]]:
        """Each record, and its bytes."""
        from pyiceberg.avro.decoder import new_decoder

        reader, codec = reader_of(self.schema), self._head.compression_codec()
        while self._decoder.tell() < self._size:
            count = self._decoder.read_int()
            block = self._decoder.read_bytes()
            block = codec.decompress(block) if codec else block
            self._decoder.skip(_SYNC)
            inner, start = new_decoder(block), 0
            for _ in range(count):
                record = reader.read(inner)
                end = inner.tell()
                yield record, block[start:end]
                start = end


# Readers have no state, and the files of a table differ in few schemas: one for each partition spec and version of a writer.


@lru_cache(maxsize=1)
def _reader_of_head() -> Any:
    from pyiceberg.avro.file import META_SCHEMA, AvroFileHeader
    from pyiceberg.avro.resolver import construct_reader

    return construct_reader(META_SCHEMA, {-1: AvroFileHeader})


@lru_cache(maxsize=64)
def _schema_of(text: str) -> Schema:
    from pyiceberg.utils.schema_conversion import AvroSchemaConversion

    return AvroSchemaConversion().avro_to_iceberg(json.loads(text))


@lru_cache(maxsize=64)
def _reader_of_entries(schema: str) -> Any:
    from pyiceberg.avro.resolver import resolve_reader
    from pyiceberg.manifest import MANIFEST_ENTRY_SCHEMAS, DataFile, DataFileContent, FileFormat, ManifestEntry, ManifestEntryStatus

    enums: Any = {0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent}
    return resolve_reader(_schema_of(schema), MANIFEST_ENTRY_SCHEMAS[3], {-1: ManifestEntry, 2: DataFile}, enums)


@lru_cache(maxsize=64)
def _reader_of_list(schema: str) -> Any:
    from pyiceberg.avro.resolver import resolve_reader
    from pyiceberg.manifest import (
        DEFAULT_READ_VERSION,
        MANIFEST_LIST_FILE_SCHEMAS,
        ManifestContent,
        ManifestFile,
        PartitionFieldSummary,
    )

    enums: Any = {517: ManifestContent}
    expected = MANIFEST_LIST_FILE_SCHEMAS[DEFAULT_READ_VERSION]
    return resolve_reader(_schema_of(schema), expected, {-1: ManifestFile, 508: PartitionFieldSummary}, enums)


def _spelled_out(found: FileEntry, readers: list[tuple[Any, Any]]) -> bytes:
    """The record with the status `existing` and everything that it inherited."""
    from pyiceberg.avro.decoder import new_decoder

    decoder, parts, entry = new_decoder(found.content), [], found.entry
    values = {_SNAPSHOT: entry.snapshot_id, _SEQUENCE: entry.sequence_number, _FILE_SEQUENCE: entry.file_sequence_number}
    for field, reader in readers:
        start = decoder.tell()
        # Read, not skipped: PyIceberg 0.12 skips a decimal, which a partition may have, as if its length were written before it.
        reader.read(decoder)
        if field.field_id == _STATUS:
            parts.append(_EXISTING)
        elif field.field_id in values:
            parts.append(_number(values[field.field_id], required=field.required))
        else:
            parts.append(found.content[start : decoder.tell()])
    return b"".join(parts)


def _field_readers(header: Header) -> list[tuple[Any, Any]]:
    from pyiceberg.avro.resolver import construct_reader

    reader: Any = construct_reader(header.schema)
    return [(field, of) for field, (_, of) in zip(header.schema.fields, reader.field_readers, strict=True)]


def _number(value: int | None, *, required: bool) -> bytes:
    if value is None:
        return _NULL
    return _varint(value) if required else _SOME + _varint(value)


def _varint(value: int) -> bytes:
    from pyiceberg.avro.encoder import BinaryEncoder

    stream = BytesIO()
    BinaryEncoder(stream).write_int(value)
    return stream.getvalue()


def _container(header: Header, records: list[bytes]) -> bytes:
    """An Avro file with one block."""
    from pyiceberg.avro.codecs import AVRO_CODEC_KEY
    from pyiceberg.avro.codecs.deflate import DeflateCodec
    from pyiceberg.avro.encoder import BinaryEncoder
    from pyiceberg.avro.file import MAGIC, META_SCHEMA, AvroFileHeader
    from pyiceberg.avro.resolver import construct_writer

    stream, sync = BytesIO(), bytes(_SYNC)
    encoder = BinaryEncoder(stream)
    meta = {**header.meta, AVRO_CODEC_KEY: "deflate"}
    construct_writer(META_SCHEMA).write(encoder, AvroFileHeader(MAGIC, meta, sync))
    compressed, size = DeflateCodec.compress(b"".join(records))
    encoder.write_int(len(records))
    encoder.write_int(size)
    encoder.write(compressed)
    encoder.write(sync)
    return stream.getvalue()
