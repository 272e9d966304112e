"""positions -> a position delete file; rows -> the statistics of their data file that PyIceberg leaves out."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from mvbuild.adapters.iceberg.private_pyiceberg import set_nan_counts

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa  # type: ignore[import-untyped]
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table

_PATH, _POSITION = 2147483546, 2147483545
"""The field ids of the two columns of a position delete file."""


def position_deletes(table: Table, path: str, positions: np.ndarray) -> DataFile:
    """Write a file that deletes rows of one data file; `positions` in ascending order."""
    import pyarrow as pa
    import pyarrow.parquet as pq  # type: ignore[import-untyped]
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    schema = pa.schema(
        [
            pa.field("file_path", pa.string(), nullable=False, metadata={"PARQUET:field_id": str(_PATH)}),
            pa.field("pos", pa.int64(), nullable=False, metadata={"PARQUET:field_id": str(_POSITION)}),
        ]
    )
    rows = pa.table([pa.array([path] * len(positions), pa.string()), pa.array(positions, pa.int64())], schema=schema)
    output = table.io.new_output(table.location_provider().new_data_location(f"{uuid.uuid4()}-00000-deletes.parquet"))
    with output.create() as stream:
        pq.write_table(rows, stream, compression="zstd", store_schema=False)
    ends = [{_PATH: path.encode(), _POSITION: int(at).to_bytes(8, "little", signed=True)} for at in (positions[0], positions[-1])]
    counts = dict.fromkeys((_PATH, _POSITION), len(positions))
    return DataFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=output.location,
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=len(positions),
        file_size_in_bytes=len(output),
        value_counts=counts,
        null_value_counts=dict.fromkeys(counts, 0),
        lower_bounds=ends[0],
        upper_bounds=ends[1],
        spec_id=table.spec().spec_id,
    )


def with_nan_counts(file: DataFile, rows: pa.Table) -> DataFile:
    """The file with the counts of NaN of its columns; if it has all of the rows."""
    import pyarrow as pa
    import pyarrow.compute as pc  # type: ignore[import-untyped]

    if file.record_count == rows.num_rows:
        floats = [(int(f.metadata[b"PARQUET:field_id"]), f.name) for f in rows.schema if pa.types.is_floating(f.type)]
        set_nan_counts(file, {id_: int(pc.sum(pc.is_nan(rows[name])).as_py() or 0) for id_, name in floats})
    return file
