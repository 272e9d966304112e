"""manifests of a manifest list + files -> the manifests that may contain or affect them, by partition summaries and sequence numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyiceberg.manifest import ManifestFile

    from mvbuild.adapters.iceberg.manifests import FileEntry, Header

_PARTITION = 102
_DATA_FILE = 2


def matching_deletes(manifests: Sequence[ManifestFile], data: Iterable[FileEntry]) -> tuple[ManifestFile, ...]:
    """The delete manifests that may contain a delete which applies to one of the data files."""
    places: dict[tuple[Any, ...], FileEntry] = {}
    for entry in data:
        known = places.setdefault((entry.spec_id, entry.partition), entry)
        if entry.sequence_number < known.sequence_number:
            places[entry.spec_id, entry.partition] = entry
    return tuple(manifest for manifest in manifests if any(_may_apply(manifest, entry) for entry in places.values()))


def may_hold_data(manifest: ManifestFile, delete: FileEntry) -> bool:
    """Whether a data manifest may list a file that a delete applies to."""
    at = manifest.min_sequence_number
    if delete.is_equality and delete.is_global:
        return at < delete.sequence_number
    return manifest.partition_spec_id == delete.spec_id and at <= delete.sequence_number and _covers(manifest, delete)


def _may_apply(manifest: ManifestFile, data: FileEntry) -> bool:
    if manifest.sequence_number < data.sequence_number:
        return False
    # Equality deletes of an unpartitioned spec apply to all files. So do those of a spec with only void transforms, which has no values.
    is_global = all(field.lower_bound is None for field in manifest.partitions or ())
    return is_global or (manifest.partition_spec_id == data.spec_id and _covers(manifest, data))


def _covers(manifest: ManifestFile, entry: FileEntry) -> bool:
    """Whether the partition of the entry is within the manifest's summaries, or that is unknown."""
    summaries, values, types = manifest.partitions, entry.partition, _partition_types(entry.header)
    if not summaries or len(summaries) != len(values) or len(types) != len(values):
        return True
    return all(_within(summary, value, of) for summary, value, of in zip(summaries, values, types, strict=True))


def _within(summary: Any, value: Any, of: Any) -> bool:
    from pyiceberg.conversions import from_bytes

    if value is None:
        return bool(summary.contains_null)
    if isinstance(value, float) and math.isnan(value):
        return summary.contains_nan is not False
    # Writers disagree on the order of UUIDs, and of strings beyond ASCII.
    if not isinstance(value, int | float | str) or not str(value).isascii():
        return True
    try:
        lower: Any = from_bytes(of, summary.lower_bound)
        upper: Any = from_bytes(of, summary.upper_bound)
        return not (str(lower) + str(upper)).isascii() or bool(lower <= value <= upper)
    except Exception:  # noqa: BLE001  a type that was widened since; what cannot be compared may match
        return True


def _partition_types(header: Header) -> list[Any]:
    data_file: Any = header.schema.find_field(_DATA_FILE).field_type
    partition = next(field.field_type for field in data_file.fields if field.field_id == _PARTITION)
    return [field.field_type for field in partition.fields]
