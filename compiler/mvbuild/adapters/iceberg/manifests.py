"""manifest lists and manifests -> FileEntry: what lists one file, with its bytes; FileEntries -> a manifest that lists only them.

Entries are copied byte for byte. PyIceberg writes neither format 3 nor specs whose column was dropped, and would lose fields that it does
not know.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

from mvbuild.adapters.iceberg.private_pyiceberg import inheritance, values_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

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
    from pyiceberg.manifest import read_manifest_list

    return list(read_manifest_list(io.new_input(manifest_list)))


def read_entries(io: FileIO, manifest: ManifestFile) -> list[FileEntry]:
    """Read the live files of a manifest."""
    from pyiceberg.manifest import ManifestEntryStatus

    with io.new_input(manifest.manifest_path).open() as stream:
        data = stream.read()
    found, inherited = _records(data, manifest.partition_spec_id), inheritance()
    return [
        FileEntry(inherited(entry, manifest), content, header)
        for entry, content, header in found
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


def _records(data: bytes, spec_id: int) -> Iterator[tuple[ManifestEntry, bytes, Header]]:
    from pyiceberg.avro.decoder import new_decoder
    from pyiceberg.avro.file import META_SCHEMA, AvroFileHeader
    from pyiceberg.avro.resolver import construct_reader, resolve_reader
    from pyiceberg.manifest import MANIFEST_ENTRY_SCHEMAS, DataFile, DataFileContent, FileFormat, ManifestEntry, ManifestEntryStatus

    decoder = new_decoder(data)
    head: Any = construct_reader(META_SCHEMA, {-1: AvroFileHeader}).read(decoder)
    codec = head.compression_codec()
    header = Header(head.meta, head.get_schema(), spec_id)
    enums: Any = {0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent}
    reader = resolve_reader(header.schema, MANIFEST_ENTRY_SCHEMAS[3], {-1: ManifestEntry, 2: DataFile}, enums)
    while decoder.tell() < len(data):
        count = decoder.read_int()
        block = decoder.read_bytes()
        block = codec.decompress(block) if codec else block
        decoder.skip(_SYNC)
        inner, start = new_decoder(block), 0
        for _ in range(count):
            entry = reader.read(inner)
            end = inner.tell()
            yield entry, block[start:end], header
            start = end


def _spelled_out(found: FileEntry, readers: list[tuple[Any, Any]]) -> bytes:
    """The record with the status `existing` and everything that it inherited."""
    from pyiceberg.avro.decoder import new_decoder

    decoder, parts, entry = new_decoder(found.content), [], found.entry
    values = {_SNAPSHOT: entry.snapshot_id, _SEQUENCE: entry.sequence_number, _FILE_SEQUENCE: entry.file_sequence_number}
    for field, reader in readers:
        start = decoder.tell()
        reader.skip(decoder)
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
