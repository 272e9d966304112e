"""keys and rows -> a commit as Flink makes it: an equality delete of the keys, with the new rows in the same snapshot.

Spark cannot write equality deletes. PyArrow writes the files, and Iceberg's own library measures and commits them.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable

Row = Mapping[str, Any]


def write_by_key(
    spark: Any,
    table: str,
    keys: Sequence[Row],
    rows: Sequence[Row] = (),
    *,
    metrics: bool = True,
    into: Callable[[str], bool] = lambda _: True,
) -> None:
    """Remove the rows that equal one of the keys, which have some columns of the table, and add `rows` to a table without partitions.

    In a partitioned table, each partition that has rows gets a delete file with all keys, if `into` agrees to its path (`p=null`).
    `metrics`: the delete files have bounds.
    """
    jvm = spark._jvm
    loaded = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, table)
    loaded.refresh()
    schema = StaticTable.from_metadata(loaded.operations().current().metadataFileLocation()).schema()
    folder = Path(loaded.location().removeprefix("file:")) / "data"
    delta = loaded.newRowDelta()
    if keys:
        names = tuple(keys[0])
        ids = spark.sparkContext._gateway.new_array(jvm.int, len(names))
        for at, name in enumerate(names):
            ids[at] = schema.find_field(name).field_id
        for spec, partition in _partitions(loaded, into):
            path = _written(folder, _some(schema, names), keys)
            made = jvm.org.apache.iceberg.FileMetadata.deleteFileBuilder(spec).ofEqualityDeletes(ids).withPath(path)
            if spec.isPartitioned():
                made = made.withPartition(partition)
            delta.addDeletes(_measured(jvm, loaded, made, path, len(keys), metrics=metrics))
    if rows:
        path = _written(folder, schema, rows)
        made = jvm.org.apache.iceberg.DataFiles.builder(loaded.spec()).withPath(path)
        delta.addRows(_measured(jvm, loaded, made, path, len(rows), metrics=True))
    delta.commit()
    spark.sql(f"REFRESH TABLE {table}")


def _partitions(loaded: Any, into: Callable[[str], bool]) -> list[tuple[Any, Any]]:
    """The spec and the values of each partition with data files; always in the same order."""
    found = {}
    tasks = loaded.newScan().planFiles()
    listed = tasks.iterator()
    while listed.hasNext():
        task = listed.next()
        spec, partition = task.spec(), task.file().partition()
        found[spec.specId(), spec.partitionToPath(partition)] = spec, partition
    tasks.close()
    return [found[key] for key in sorted(found) if into(key[1])]


def _some(schema: Schema, names: Sequence[str]) -> Schema:
    """Those columns; of `st.a`, the struct."""
    return Schema(*(schema.find_field(name.partition(".")[0]) for name in names))


def _written(folder: Path, schema: Schema, rows: Sequence[Row]) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"by-key-{uuid.uuid4()}.parquet"
    found = schema_to_pyarrow(schema)
    parquet.write_table(pa.Table.from_pylist([{name: row.get(name) for name in found.names} for row in rows], schema=found), path)
    return str(path)


def _measured(jvm: Any, loaded: Any, made: Any, path: str, count: int, *, metrics: bool) -> Any:
    made = made.withFormat("parquet").withFileSizeInBytes(Path(path).stat().st_size)
    if not metrics:
        return made.withRecordCount(count).build()
    config = jvm.org.apache.iceberg.MetricsConfig.getDefault()
    return made.withMetrics(jvm.org.apache.iceberg.parquet.ParquetUtil.fileMetrics(loaded.io().newInputFile(path), config)).build()
