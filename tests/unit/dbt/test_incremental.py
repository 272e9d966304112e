from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pytest

from mvbuild.api import compile
from mvbuild.dbt.incremental import OF_RUNS
from mvbuild.dbt.reasons import REASONS
from mvbuild.diagnostics import ProjectError
from unit.dbt.incremental_cases import (
    BOUNDS_BACK,
    FIRST,
    FIRST_ROWS,
    GUARDED_UNION,
    IF,
    LAST,
    LOWER_BOUNDS,
    MERGE,
    NEWER,
    NEWEST_ROW,
    OVERWRITE,
    REFUSED,
    RUN_DAYS,
    SOURCE,
    START,
    STARTED_BY_CLOCK,
    WHOLE_PARTITIONS,
    WINDOWED,
    first_of_each,
    guarded,
    model,
    started,
)
from unit.dbt.projects import codes, item, taken, text
from unit.worlds import write_project as write


@pytest.mark.parametrize(
    "condition",
    LOWER_BOUNDS,
)
def test_a_guard_that_only_leaves_out_rows_goes(tmp_path: Path, condition: str) -> None:
    found = taken(tmp_path, guarded(MERGE, condition))
    assert item(found, "m").verdict == "changed"
    assert set(codes(found, "m")) == {"guard-removed", "setting-removed", "table-to-mv", "unique-key-tested"}
    assert text(found, "models/m.sql").strip() == (
        "{{ config(materialized='materialized_view') }}\nselect id, ts, day\nfrom {{ source('raw', 'events') }} e"
    )
    guard = next(r for r in item(found, "m").reasons if r.code == "guard-removed")
    assert str(guard.span) == "models/m.sql:4:7"
    assert "having count(*) > 1" in text(found, "tests/m_unique_key.sql")


@pytest.mark.parametrize(
    ("files", "code"),
    REFUSED,
)
def test_what_is_more_than_leaving_out_rows_is_refused(tmp_path: Path, files: dict[str, str], code: str) -> None:
    found = taken(tmp_path, files)
    assert code in codes(found, "m")
    assert "models/m.sql" not in found.files


@pytest.mark.parametrize(
    ("files", "code"),
    REFUSED,
)
def test_the_full_query_is_taken_if_you_ask_for_it(tmp_path: Path, files: dict[str, str], code: str) -> None:
    found = taken(tmp_path, files, full_query=("[l-n]",))
    others = set(codes(taken(tmp_path, files), "m")) - OF_RUNS
    if code in OF_RUNS and not any(REASONS[other].refuses for other in others):
        assert "full-query" in codes(found, "m")
        assert item(found, "m").verdict == "changed"
        assert "is_incremental" not in text(found, "models/m.sql")
    else:
        assert "models/m.sql" not in found.files


def test_the_full_query_of_a_merge_has_a_unique_key(tmp_path: Path) -> None:
    files = guarded(MERGE, NEWER, tail="limit 10")
    found = taken(tmp_path, files, full_query=("M*",))
    assert {"full-query", "unique-key-tested"} <= set(codes(found, "m"))


def test_the_full_query_of_no_model(tmp_path: Path) -> None:
    with pytest.raises(ProjectError) as caught:
        taken(tmp_path, guarded(MERGE, NEWER), full_query=("m", "o"))
    assert [d.message for d in caught.value.diagnostics] == ["--full-query 'o' matches no model"]


def test_a_model_that_is_proven_needs_no_wish(tmp_path: Path) -> None:
    files = guarded(MERGE, NEWER)
    assert codes(taken(tmp_path, files, full_query=("*",)), "m") == codes(taken(tmp_path, files), "m")


@pytest.mark.parametrize(
    ("columns", "condition", "tail"),
    WHOLE_PARTITIONS,
)
def test_insert_overwrite_of_whole_partitions(tmp_path: Path, columns: str, condition: str, tail: str) -> None:
    found = taken(tmp_path, guarded(OVERWRITE, condition, columns, tail))
    assert item(found, "m").verdict == "changed", item(found, "m").reasons
    assert "is_incremental" not in text(found, "models/m.sql")
    assert "partition_by=['day']" in text(found, "models/m.sql")


def test_the_newest_row_of_each_key_is_the_same_table(tmp_path: Path) -> None:
    assert item(taken(tmp_path, model(MERGE, NEWEST_ROW)), "m").verdict == "changed"


def test_a_guard_in_each_branch_of_union_all(tmp_path: Path) -> None:
    assert item(taken(tmp_path, model(MERGE, GUARDED_UNION)), "m").verdict == "changed"


@pytest.mark.parametrize(
    ("template", "left"),
    [
        ("select 1 as a {% if is_incremental() %}, 2 as b{% endif %}", "select 1 as a "),
        ("{% if not is_incremental() %}select 1 as a{% else %}select 2 as a{% endif %}", "select 1 as a"),
        ("{% if is_incremental() %}select 1 as a{% elif true %}select 2 as a{% endif %}", "{% if true %}select 2 as a{% endif %}"),
        ("{%- if is_incremental() and var('x', 1) == 1 -%}select 1 as a{%- else -%}select 2 as a{%- endif -%}", "select 2 as a"),
        ("{% set inc = is_incremental() %}select {{ 1 if inc else 2 }} as a", "{% set inc = false %}select {{ 1 if inc else 2 }} as a"),
        ("{% if true or is_incremental() %}select 1 as a{% endif %}", "{% if true or false %}select 1 as a{% endif %}"),
    ],
)
def test_is_incremental_of_a_table_is_false(tmp_path: Path, template: str, left: str) -> None:
    found = taken(tmp_path, {"models/m.sql": template})
    assert codes(found, "m") == ["not-incremental"]
    assert text(found, "models/m.sql") == left


@pytest.mark.parametrize(
    ("config", "query", "code"),
    [
        (OVERWRITE, "%s union all select id, ts, day from {{ source('raw', 'users') }}", "guard-not-partition"),
        (
            MERGE,
            "select day, count(*) as id from (%s union all select id, ts, day from {{ source('raw', 'users') }}) group by day",
            "guard-below-aggregate",
        ),
        (MERGE, "%s except select id, ts, day from {{ source('raw', 'users') }}", "guard-below-join"),
    ],
)
def test_a_guard_in_one_branch_only(tmp_path: Path, config: str, query: str, code: str) -> None:
    body = "select id, ts, day from {{ source('raw', 'events') }} {% if is_incremental() %}where day >= (select max(day) from {{ this }}){% endif %}"
    assert code in codes(taken(tmp_path, model(config, query % f"({body})" if "%s union" in query[:9] else query.replace("%s", body))), "m")


def test_databricks_merges_by_default(tmp_path: Path) -> None:
    profile = "shop: {target: prod, outputs: {prod: {type: databricks, schema: main, token: abc}}}"
    files = {**guarded("materialized='incremental', unique_key=['id', 'day']", NEWER), "profiles.yml": profile}
    found = taken(tmp_path, files)
    assert item(found, "m").verdict == "changed"
    assert "group by `id`, `day`" in text(found, "tests/m_unique_key.sql")


def test_a_key_that_has_a_unique_test_gets_no_other(tmp_path: Path) -> None:
    yaml = "models:\n  - name: m\n    columns:\n      - {name: id, tests: [unique]}\n"
    found = taken(tmp_path, {**guarded(MERGE, NEWER), "models/m.yml": yaml})
    assert "tests/m_unique_key.sql" not in found.files
    assert codes(found, "unique_m_id", "test") == []


def test_a_guard_in_a_macro(tmp_path: Path) -> None:
    macro = f"{{% macro newer() %}}{{% if is_incremental() %}}where {NEWER}{{% endif %}}{{% endmacro %}}"
    files = model(MERGE, "select id, ts from {{ source('raw', 'events') }} {{ newer() }}")
    found = taken(tmp_path, {**files, "macros/newer.sql": macro})
    assert item(found, "m").verdict == "changed"
    assert text(found, "macros/newer.sql") == "{% macro newer() %}{% endmacro %}"


@pytest.mark.parametrize("where", FIRST_ROWS)
def test_the_first_row_may_be_chosen_in_several_ways(tmp_path: Path, where: str) -> None:
    assert item(taken(tmp_path, model(MERGE, first_of_each(where))), "m").verdict == "changed"


@pytest.mark.parametrize("where", ["n = 2", "n <= 2", "n > 1", "n = 1 or id = 3", "n <> 1", "true", "n = '1'", "n + 1 = 2", "n = id"])
def test_a_rank_that_is_not_compared_with_1_is_refused(tmp_path: Path, where: str) -> None:
    assert "guard-below-aggregate" in codes(taken(tmp_path, model(MERGE, first_of_each(where))), "m")


@pytest.mark.parametrize(
    ("config", "query", "code"),
    [
        # Every window counts, not only the last.
        (MERGE, first_of_each("n = 1", more=", row_number() over (partition by other order by ts desc) as o"), "guard-below-aggregate"),
        (MERGE, first_of_each("n = 1", more=", sum(v) over (partition by other) as o"), "guard-below-aggregate"),
        # The key of the rank is not the key of the merge, though it has its name.
        (MERGE, first_of_each("n = 1").replace("select id, ts from (", "select ts as id, ts from (", 1), "guard-below-aggregate"),
        # A rank without a filter.
        (MERGE, first_of_each("n = 1").replace(" where n = 1", ""), "guard-below-aggregate"),
        # PIVOT and aggregates that sqlglot does not know.
        (
            MERGE,
            f"select * from (select id, ts, kind, v from {SOURCE}{IF} where {NEWER}{{% endif %}}) pivot (sum(v) for kind in ('a', 'b'))",
            "guard-below-aggregate",
        ),
        (MERGE, f"select try_sum(v) as id, try_avg(ts) as ts from {SOURCE}{IF} where {NEWER}{{% endif %}}", "guard-below-aggregate"),
        (MERGE, f"select my_udaf(v) as id, max(ts) as ts from {SOURCE}{IF} where {NEWER}{{% endif %}}", "guard-below-aggregate"),
        # A column of the same name in another table.
        (
            MERGE,
            f"select e.id, u.ts from {SOURCE} e join {{{{ source('raw', 'users') }}}} u on u.id = e.id{IF} where e.ts > (select max(ts) from {{{{ this }}}}){{% endif %}}",
            "guard-other-column",
        ),
        (
            MERGE,
            f"select e.id, e.payload.ts from {SOURCE} e{IF} where e.ts > (select max(ts) from {{{{ this }}}}){{% endif %}}",
            "guard-other-column",
        ),
        (
            OVERWRITE,
            f"select u.day, count(*) n from {SOURCE} e join {{{{ source('raw', 'users') }}}} u on u.id = e.id{IF} where e.day >= (select max(day) from {{{{ this }}}}){{% endif %}} group by u.day",
            "guard-below-aggregate",
        ),
        (
            MERGE,
            f"select id, ts from (select * except (ts), loaded as ts from {SOURCE}{IF} where {NEWER}{{% endif %}})",
            "guard-other-column",
        ),
        (
            MERGE,
            f"with e(ts, id) as (select id, ts from {SOURCE}{IF} where {NEWER}{{% endif %}}) select id, ts from e",
            "guard-other-column",
        ),
        # UNION goes by position.
        (
            OVERWRITE,
            " union all ".join(
                f"select {columns} from {SOURCE}{IF} where day >= (select max(day) from {{{{ this }}}}){{% endif %}}"
                for columns in ("id, day", "day, id")
            ),
            "guard-other-column",
        ),
        # A partition that is a constant.
        (OVERWRITE, f"select id, '{{{{ var('run_day', '2024-01-01') }}}}' as day from {SOURCE}", "constant-partition"),
        (OVERWRITE, f"select id, date '2024-01-01' as day from {SOURCE}", "constant-partition"),
        (OVERWRITE, f"select id, day from {SOURCE} where day = date '2024-01-01'", "constant-partition"),
        (OVERWRITE, f"select id, day from {SOURCE} where date(day) in (date '2024-01-01')", "constant-partition"),
        (OVERWRITE, f"select id, current_date() as day from {SOURCE}", "load-time"),
        (OVERWRITE, f"select id, day from {SOURCE} where day >= '{{{{ var('start', '2024-01-01') }}}}'", "run-variable"),
        (MERGE, f"select id, ts from {SOURCE} where day = '{{{{ var('start', '2024-01-01') }}}}'", "run-variable"),
    ],
)
def test_what_looks_like_a_part_of_the_table_and_is_not(tmp_path: Path, config: str, query: str, code: str) -> None:
    found = taken(tmp_path, model(config, query))
    assert code in codes(found, "m"), item(found, "m").reasons
    assert "models/m.sql" not in found.files


@pytest.mark.parametrize(
    "bound",
    [
        "-(select max(ts) from {{ this }})",
        "(select -max(ts) from {{ this }})",
        "(select max(ts) + interval 7 days from {{ this }})",
        "(select max(ts) from {{ this }}) + interval 7 days",
        "(select max(ts) - interval '-7' day from {{ this }})",
        "date_add((select max(ts) from {{ this }}), 7)",
        "date_sub((select max(ts) from {{ this }}), -7)",
        "(select max(ts) * 2 from {{ this }})",
        "(select greatest(max(ts), current_timestamp()) from {{ this }})",
        "(select max(ts) + count(*) from {{ this }})",
        "(select max(ts - x) from {{ this }})",
        "(select coalesce(max(ts), max(day)) from {{ this }})",
        "current_date + 7",
        "date_add(current_date(), 7)",
        "my_function((select max(ts) from {{ this }}))",
    ],
)
def test_a_bound_above_the_maximum_leaves_out_rows_for_good(tmp_path: Path, bound: str) -> None:
    assert "guard-not-lower-bound" in codes(taken(tmp_path, guarded(MERGE, f"ts > {bound}")), "m")


@pytest.mark.parametrize(
    "bound",
    BOUNDS_BACK,
)
def test_a_bound_that_goes_back_is_a_lower_bound(tmp_path: Path, bound: str) -> None:
    found = taken(tmp_path, guarded(MERGE, f"ts > {bound}"))
    assert item(found, "m").verdict == "changed", item(found, "m").reasons


@pytest.mark.parametrize("upstream", ["view", "ephemeral", "table"])
def test_a_clock_in_what_an_incremental_model_reads(tmp_path: Path, upstream: str) -> None:
    files = {
        "models/up.sql": f"{{{{ config(materialized='{upstream}') }}}}select id, ts, current_timestamp() as seen from {SOURCE}",
        "models/mid.sql": "{{ config(materialized='view') }}select * from {{ ref('up') }}",
        **model(MERGE, f"select id, ts, seen from {{{{ ref('mid') }}}}{IF} where {NEWER}{{% endif %}}"),
    }
    found = taken(tmp_path, files)
    assert "load-time" in codes(found, "m")


@pytest.mark.parametrize("config", ["{severity: warn}", "{where: 'id > 3'}", "{enabled: false}"])
def test_a_unique_test_that_lets_rows_pass_does_not_prove_the_key(tmp_path: Path, config: str) -> None:
    yaml = f"models:\n  - name: m\n    columns:\n      - name: id\n        tests: [{{unique: {{config: {config}}}}}]\n"
    found = taken(tmp_path, {**guarded(MERGE, NEWER), "models/m.yml": yaml})
    assert "tests/m_unique_key.sql" in found.files


@pytest.mark.parametrize("part", ["{{ this }}", "{{ this.schema }}", "{{ this.database }}", "{{ shown() }}"])
def test_the_full_name_of_dbts_table_is_not_written_into_a_query(tmp_path: Path, part: str) -> None:
    files = {"models/m.sql": f"select '{part}' as a", "macros/shown.sql": "{% macro shown() %}{{ this.schema }}{% endmacro %}"}
    found = taken(tmp_path, files)
    assert item(found, "m").verdict == "refused"


@pytest.mark.parametrize("part", ["{{ this.name }}", "{{ this.identifier }}", "{{ this.table }}", "{{ shown() }}"])
def test_the_name_without_its_schema_is_the_same_here(tmp_path: Path, part: str) -> None:
    files = {
        "models/m.sql": f"{{{{ config(alias='sales') }}}}select '{part}' as a",
        "macros/shown.sql": "{% macro shown() %}{{ this.name }}{% endmacro %}",
    }
    found = taken(tmp_path, files)
    assert item(found, "m").verdict == "unchanged", item(found, "m").reasons
    write(tmp_path / "new", {path: text.text for path, text in found.files.items()})
    (model,) = (node for node in compile(tmp_path / "new").nodes.values() if node.id == "model.shop.m")
    assert "'sales' as a" in model.query.sql.text


@pytest.mark.parametrize(
    "files",
    [
        {"models/m.sql": "{{ config(enabled=var('on', false)) }}select 1 as a"},
        {"models/m.sql": "select 1 as a", "models/m.yml": "models: [{name: m, config: {enabled: \"{{ var('on', false) }}\"}}]"},
    ],
)
def test_a_model_that_a_variable_disables_is_not_taken_unjudged(tmp_path: Path, files: dict[str, str]) -> None:
    found = taken(tmp_path, files)
    assert codes(found, "m") == ["disabled-by-template"]
    assert "models/m.sql" not in found.files


def test_a_model_that_is_disabled_for_good_stays_disabled(tmp_path: Path) -> None:
    found = taken(tmp_path, {"models/m.sql": "{{ config(enabled=false) }}select 1 as a"})
    assert codes(found, "m") == ["disabled"]
    assert "enabled=false" in text(found, "models/m.sql")


def test_a_start_of_the_first_run_stays_where_later_runs_only_go_above_it(tmp_path: Path) -> None:
    found = taken(tmp_path, started(NEWER))
    assert "guard-removed" in codes(found, "m"), item(found, "m").reasons
    assert text(found, "models/m.sql").split("where")[1].split() == ["id", ">", "0", "and", "ts", ">=", "'2020-01-01'"]
    assert item(taken(tmp_path, started(NEWER.replace(">", ">="), START.replace(">=", ">"))), "m").verdict == "changed"


@pytest.mark.parametrize("name", STARTED_BY_CLOCK)
def test_a_start_that_the_clock_has_passed_stays(tmp_path: Path, name: str) -> None:
    found = taken(tmp_path, STARTED_BY_CLOCK[name], now=datetime(2023, 2, 1, tzinfo=timezone.utc))
    assert item(found, "m").verdict == "changed", item(found, "m").reasons
    assert "2020-01-01" in text(found, "models/m.sql")


@pytest.mark.parametrize("name", STARTED_BY_CLOCK)
def test_a_start_that_a_look_back_from_the_clock_can_still_go_below_is_refused(tmp_path: Path, name: str) -> None:
    found = taken(tmp_path, STARTED_BY_CLOCK[name], now=datetime(2020, 1, 4, tzinfo=timezone.utc))
    assert "guard-changes-query" in codes(found, "m")


@pytest.mark.parametrize(
    "condition",
    [
        "day >= current_date - 3",
        "ts >= current_date - day",
        "ts >= current_date - interval '3' year - interval 'x' day",
        "date(ts) >= current_date - 3",
    ],
)
def test_a_look_back_that_does_not_show_that_the_start_is_passed_is_refused(tmp_path: Path, condition: str) -> None:
    assert item(taken(tmp_path, started(condition)), "m").verdict == "refused"


@pytest.mark.parametrize("name", WINDOWED)
def test_a_window_of_the_run_is_a_guard(tmp_path: Path, name: str) -> None:
    found = taken(tmp_path, WINDOWED[name], vars=RUN_DAYS)
    assert {"run-window", "guard-removed"} <= {*codes(found, "m")}, item(found, "m").reasons
    assert "day >= '2020-01-01'" in text(found, "models/m.sql")


@pytest.mark.parametrize(
    "condition",
    [
        "day >= date '2024-01-01' and day < date '2024-01-02'",  # constants: later rows are never read
        f"day > {FIRST} and day < {LAST}",  # both ends are left out
        f"day < {LAST}",
        f"ts >= {FIRST} and day < {LAST}",
        f"day >= {FIRST} and id < {LAST}",
        "id = '{{ var(\"first\") }}' or id = 3",
        "kind = '{{ var(\"country\") }}'",  # not a time
        "day = date '{{ var(\"unset\") }}'",
        f"day between {FIRST} and current_date",
    ],
)
def test_what_is_not_a_window_that_moves_on(tmp_path: Path, condition: str) -> None:
    files = guarded(OVERWRITE, condition, "day, count(*) n", "group by day")
    found = taken(tmp_path, files, vars={**RUN_DAYS, "country": "de"})
    assert any(code.startswith("guard-") for code in codes(found, "m")), item(found, "m").reasons


def test_a_start_that_the_window_has_not_passed_is_refused(tmp_path: Path) -> None:
    found = taken(tmp_path, WINDOWED[next(iter(WINDOWED))], vars={"first": "2019-12-31", "last": "2020-01-01"})
    assert "guard-changes-query" in codes(found, "m")


@pytest.mark.parametrize(
    "files",
    [
        started("ts > (select coalesce(max(ts), '1900-01-01') from {{ this }})"),
        started("ts > (select max(ts) - interval 3 days from {{ this }})"),
        started("ts > date_sub((select max(ts) from {{ this }}), 3)"),
        started("ts > '2019-01-01'"),
        started(NEWER, START.replace("ts >=", "day >=")),
        started(NEWER, START.replace(">=", "<=")),
        started(NEWER, START.replace("ts >= '2020-01-01'", "id in (1, 2)")),
        started("date(ts) >= (select max(date(ts)) from {{ this }})"),
        model(MERGE, "select id, ts from {{ source('raw', 'events') }} where id > 0 " + START),
    ],
)
def test_a_start_that_a_later_run_could_go_below_is_refused(tmp_path: Path, files: dict[str, str]) -> None:
    """Its rows would be in dbt's table, and not in the full query."""
    assert codes(taken(tmp_path, files), "m") == ["guard-changes-query"]


def test_a_start_in_one_branch_of_a_union_is_refused(tmp_path: Path) -> None:
    """The maximum of the table may be that of the other branch, which begins earlier."""
    first = started(NEWER)["models/m.sql"]
    found = taken(tmp_path, {"models/m.sql": f"{first} union all select id, ts from {{{{ source('raw', 'users') }}}}"})
    assert "guard-changes-query" in codes(found, "m")
