from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from mvbuild.project.folders import layer_of
from mvbuild.project.setting import Setting
from mvbuild.project.setting_values import written
from mvbuild.project.settings import MODEL_SETTINGS, PartitionField, SortField, check_layer, model_config, seed_config
from mvbuild.project.yaml_spans import read_yaml
from mvbuild.source import SourceFile, Span


def layer(text: str):
    node, wrong = read_yaml(SourceFile("c.yml", text))
    assert not wrong
    return layer_of(node)


def config(*texts: str):
    return model_config([layer(text) for text in texts])


def test_the_nearest_layer_wins_and_tags_and_meta_add_up() -> None:
    found, wrong = config(
        "+schema: a.b\n+tags: x\nmeta: {p: 1, q: 1}\ntblproperties: {k: 1, f: true}",
        "namespace: [c, d]\ntags: [y, x]\nmeta: {q: 2}\ntable_properties: {k: v}",
    )
    assert not wrong
    assert found.namespace == ("c", "d")
    assert found.tags == ("x", "y")
    assert found.meta == {"p": 1, "q": 2}
    assert found.table_properties == {"k": "v", "f": "true"}
    assert str(found.spans["namespace"]) == "c.yml:1:12"
    assert found.materialized == "materialized_view"


@pytest.mark.parametrize(
    ("nearest", "expected"),
    [("dialects: []", ()), ("dialects: [duckdb]", ("duckdb",)), ("dialects: duckdb", ("duckdb",)), ("alias: a", ("trino",))],
)
def test_the_nearest_list_of_dialects_replaces_that_of_the_folder(nearest: str, expected: tuple[str, ...]) -> None:
    found, wrong = config("+dialects: [trino]", nearest)
    assert (found.dialects, wrong) == (expected, ())


EMPTY_LISTS = [
    ("partition_by: [a]", "partition_by: []", "partition_by"),
    ("sort_by: [a]", "sort_by: []", "sort_by"),
    ("dialects: [trino]", "dialects: []", "dialects"),
]


@pytest.mark.parametrize(("folder", "model", "field"), EMPTY_LISTS)
def test_an_empty_list_clears_what_a_folder_says(folder: str, model: str, field: str) -> None:
    found, wrong = config(folder, model)
    assert (getattr(found, field), wrong) == ((), ())


def test_only_tags_add_up() -> None:
    """A list that adds up cannot be cleared by an empty one; the documentation names the one that does."""
    assert [name for name, key in MODEL_SETTINGS.items() if key.merge == "append"] == ["tags"]


def test_null_takes_an_outer_value_back() -> None:
    found, wrong = config("alias: a", "alias: null")
    assert (found.alias, dict(found.spans), wrong) == (None, {}, ())


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("region", [PartitionField(transform="identity", column="region")]),
        (
            "months(order_date), bucket(16, id)",
            [PartitionField(transform="month", column="order_date"), PartitionField(transform="bucket", column="id", width=16)],
        ),
        (
            "[day(ts), 'truncate(4, code)']",
            [PartitionField(transform="day", column="ts"), PartitionField(transform="truncate", column="code", width=4)],
        ),
        ("'`my col`'", [PartitionField(transform="identity", column="my col")]),
    ],
)
def test_partition_by(text: str, fields: list[PartitionField]) -> None:
    found, wrong = config(f"partition_by: {text}")
    assert not wrong
    assert found.partition_by == tuple(fields)


def test_sort_by() -> None:
    found, wrong = config("sort_by: [a, b desc, c ASC nulls last, d desc nulls first]")
    assert not wrong
    assert found.sort_by == (
        SortField(column="a"),
        SortField(column="b", descending=True, nulls_first=False),
        SortField(column="c", nulls_first=False),
        SortField(column="d", descending=True, nulls_first=True),
    )


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *(("30m", 1800), ("1h30m", 5400), ("'30 minutes'", 1800), ("2 days", 172800), ("1d 2h", 93600), ("45s", 45), ("1.5h", 5400)),
        *(("0s", 0), ("500ms", 0.5), ("1s500ms", 1.5), ("'250 milliseconds'", 0.25), ("1m 5ms", 60.005)),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    found, wrong = config(f"freshness: {{max_staleness: {text}}}")
    assert not wrong
    assert found.max_staleness == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("materialized: table", "wrong-type", "1:15"),
        ("materialized: [view]", "wrong-type", "1:15"),
        ("enabled: 'no'", "wrong-type", "1:10"),
        ("alias: 5", "wrong-type", "1:8"),
        ("namespace: a..b", "wrong-type", "1:12"),
        ("partition_by: [a, week(b)]", "wrong-type", "1:19"),
        ("partition_by: bucket(id)", "wrong-type", "1:15"),
        ("partition_by: bucket(0, id)", "wrong-type", "1:15"),
        ("partition_by: month(2, id)", "wrong-type", "1:15"),
        ("sort_by: [a down]", "wrong-type", "1:11"),
        ("freshness: {max_staleness: 30}", "wrong-type", "1:28"),
        ("freshness: {max_staleness: 30 parsecs}", "wrong-type", "1:28"),
        ("freshness: {max_staleness: 99999999999d}", "wrong-type", "1:28"),
        ("target_lag: 15", "wrong-type", "1:13"),
        ("target_lag: soon", "wrong-type", "1:13"),
        ("freshness: {max_stale: 30m}", "unknown-key", "1:13"),
        ("table_properties: {a: [1]}", "wrong-type", "1:23"),
        ("table_properties: {a: b, mvbuild.model: x}", "bad-config", "1:26"),
        ("table_properties: {iceberg.view.version: 7}", "bad-config", "1:20"),
        ("table_properties: {iceberg.base.snapshot.u: 7}", "bad-config", "1:20"),
        ("table_properties: {iceberg.child.view.version.u: 7}", "bad-config", "1:20"),
        ("table_properties: {iceberg.materialized.view: true}", "bad-config", "1:20"),
        ("table_properties: {materialized-view.uuid: u}", "bad-config", "1:20"),
        ("table_properties: {commit.retry.num-retries: x}", "bad-config", "1:46"),
        ("table_properties: {commit.retry.max-wait-ms: -1}", "bad-config", "1:46"),
        ("table_properties: {version.history.num-entries: 1.5}", "bad-config", "1:49"),
        ("table_properties: {write.metadata.previous-versions-max: true}", "bad-config", "1:58"),
        ("table_properties: {write.target-file-size-bytes: 64MB}", "bad-config", "1:50"),
        ("table_properties: {write.parquet.row-group-size-bytes: 99999999999}", "bad-config", "1:56"),
        ("tags: [a, 1]", "wrong-type", "1:11"),
        ("refresh_policy: never", "wrong-type", "1:17"),
        ("+materalized: view", "unknown-key", "1:1"),
        ("schema: a\nnamespace: b", "duplicate-key", "1:1"),
    ],
)
def test_bad_settings(text: str, code: str, place: str) -> None:
    (wrong,) = check_layer(layer(text))
    assert (wrong.code, str(wrong.span)) == (code, f"c.yml:{place}")
    assert wrong.help


def test_help() -> None:
    assert "mvbuild finds the increments by itself" in check_layer(layer("materialized: incremental"))[0].help
    assert check_layer(layer("materalized: view"))[0].help == "Did you mean 'materialized'?"
    assert check_layer(layer("unique_key: id"))[0].help == "Remove it: mvbuild finds the increments by itself."


def test_a_view_has_no_partitions() -> None:
    _, (wrong,) = config("partition_by: a", "materialized: view")
    assert (wrong.code, str(wrong.span), str(wrong.notes[0].span)) == ("bad-config", "c.yml:1:15", "c.yml:1:15")


def test_what_the_metadata_file_format_has_no_place_for() -> None:
    _, wrong = config(
        "storage_table: t\nstorage_namespace: n\ntable_properties: {a: b, format-version: 3}",
        "storage: {format: metadata-file}",
    )
    assert [(d.code, str(d.span)) for d in wrong] == [("bad-config", f"c.yml:{at}") for at in ("1:16", "2:20", "3:26")]
    assert all(d.help for d in wrong)
    _, wrong = config(
        "storage_namespace: n\ntable_properties: {format-version: 2}", "storage: {format: metadata-file}\nstorage_namespace: null"
    )
    assert not wrong
    assert not config("storage_table: t\ntable_properties: {format-version: 3}\nstorage: {format: table-properties}")[1]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(204.471, "3m 24.5s"), (3600, "1h"), (5400, "1h 30m"), (86400 * 2, "2d"), (0.045, "45ms"), (0, "0s"), (59.96, "1m"), (1.5, "1.5s")],
)
def test_a_duration_is_written_as_a_user_writes_it(seconds: float, text: str) -> None:
    assert written(timedelta(seconds=seconds)) == text


def test_a_config_call_has_one_place() -> None:
    file = SourceFile("m.sql", "{{ config(tags=[1]) }}")
    call = Span(file, 3, 19)
    setting: dict[str, Any] = {"tags": Setting([1], call), "zzz": Setting(1, call)}
    _, wrong = model_config([setting])
    assert [(d.code, d.span) for d in wrong] == [("wrong-type", call), ("unknown-key", call)]


def test_seed_settings() -> None:
    found, wrong = seed_config([layer("column_types: {a: int}\ndelimiter: ;"), layer("column_types: {b: date}\nenabled: false")])
    assert not wrong
    assert {n: (s.value, str(s.span)) for n, s in found.column_types.items()} == {"a": ("int", "c.yml:1:19"), "b": ("date", "c.yml:1:19")}
    assert (found.delimiter, found.enabled) == (";", False)
    _, (reserved,) = seed_config([layer("table_properties: {mvbuild.seed.checksum: x}")])
    assert (reserved.code, str(reserved.span)) == ("bad-config", "c.yml:1:20")
    _, wrong = seed_config([layer("delimiter: ab\nmaterialized: view")])
    assert [(d.code, str(d.span)) for d in wrong] == [("wrong-type", "c.yml:1:12"), ("unknown-key", "c.yml:2:1")]


@pytest.mark.parametrize(("text", "value"), [("1e-9", 1e-9), ("0", 0.0), ("0.5", 0.5), ("'1e-6'", 1e-6), ("null", None)])
def test_float_tolerance(text: str, value: float | None) -> None:
    found, wrong = config(f"float_tolerance: {text}")
    assert (found.float_tolerance, wrong) == (value, ())


@pytest.mark.parametrize("text", ["-1", "nan", "some", "true", "[1]", ".inf"])
def test_a_float_tolerance_that_is_none(text: str) -> None:
    (wrong,) = config(f"float_tolerance: {text}")[1]
    assert wrong.message == "'float_tolerance' must be a number like 1e-9, not below 0"
