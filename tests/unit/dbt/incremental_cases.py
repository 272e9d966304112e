"""Incremental models of a small project: those that the import takes, and those that it refuses."""

from __future__ import annotations

from collections.abc import Mapping

Files = Mapping[str, str]
MERGE = "materialized='incremental', incremental_strategy='merge', unique_key='id'"
OVERWRITE = "materialized='incremental', incremental_strategy='insert_overwrite', partition_by=['day']"
WHOLE_TABLE = "materialized='incremental', incremental_strategy='insert_overwrite'"
NEWER = "ts > (select max(ts) from {{ this }})"
SOURCE = "{{ source('raw', 'events') }}"
USERS = "{{ source('raw', 'users') }}"
IF = "{% if is_incremental() %}"
START = "{% if not is_incremental() %} and ts >= '2020-01-01' {% endif %}"


def model(config: str, body: str) -> dict[str, str]:
    return {"models/m.sql": f"{{{{ config({config}) }}}}\n{body}\n"}


def guarded(config: str, condition: str, columns: str = "id, ts, day", tail: str = "") -> dict[str, str]:
    body = (
        f"select {columns}\nfrom {{{{ source('raw', 'events') }}}} e\n{{% if is_incremental() %}}\nwhere {condition}\n{{% endif %}}\n{tail}"
    )
    return model(config, body)


def first_of_each(where: str, order: str = "ts desc", more: str = "") -> str:
    ranked = f"select id, ts, row_number() over (partition by id order by {order}) as n{more} from {SOURCE}{IF} where {NEWER}{{% endif %}}"
    return f"select id, ts from ({ranked}) where {where}"


def started(condition: str, start: str = START, columns: str = "id, ts") -> dict[str, str]:
    return model(MERGE, f"select {columns} from {SOURCE} where id > 0 {{% if is_incremental() %}} and {condition} {{% endif %}} {start}")


def newer(condition: str = NEWER, word: str = "where") -> str:
    return f"{IF} {word} {condition}{{% endif %}}"


# Taken

LAST_WEEK = "ts >= date_trunc('day', now() - interval '1 week')"
STARTED_BY_CLOCK: Mapping[str, Files] = {
    "a start before a look back": started(LAST_WEEK),
    "a start before a look back in days": started("ts > current_date - 3", START.replace("'2020-01-01'", "timestamp '2020-01-01'")),
    "a start before a look back in each branch": model(
        MERGE,
        "\nunion all\n".join(
            f"select id, ts from {table} where id > 0 {IF} and {LAST_WEEK} {{% endif %}} {START}" for table in (SOURCE, USERS)
        ),
    ),
    "a start before a look back in ON": model(
        MERGE,
        f"select e.id, e.ts, u.name from {SOURCE} e join {USERS} u on u.id = e.user_id {IF} and e.{LAST_WEEK} {{% endif %}} {START.replace('ts', 'e.ts')}",
    ),
}
"""The first run begins at a constant, and later ones look back from the clock."""
RUN_DAYS = {"first": "2024-01-01", "last": "2024-01-02"}
"""Values of variables of the run."""
FIRST, LAST = "date '{{ var(\"first\") }}'", "date '{{ var(\"last\") }}'"
WINDOWS = [
    f"day >= {FIRST} and day < {LAST}",
    f"day >= {FIRST} - interval 1 day and {LAST} > day",
    f"day between {FIRST} - 6 and {FIRST}",
    f"day = {FIRST}",
    f"day > {FIRST} - 1 and day <= {FIRST}",
]
WINDOWED: Mapping[str, Files] = {
    f"a window: {condition}": model(
        OVERWRITE,
        f"select day, count(*) as n from {SOURCE} where id > 0 {IF} and {condition} {{% else %}} and day >= '2020-01-01' {{% endif %}}"
        " group by day",
    )
    for condition in WINDOWS
}
"""Each run reads the rows between two variables of the run."""
LOWER_BOUNDS = [
    NEWER,
    "e.TS >= (select max(ts) from {{ this }})",
    "(select max(ts) from {{ this }}) < ts",
    "ts >= (select coalesce(max(ts), timestamp '1900-01-01') - interval 3 days from {{ this }})",
    "ts > coalesce((select max(t.ts) from {{ this }} t), timestamp '1900-01-01')",
    "date(ts) >= date_sub((select max(date(ts)) from {{ this }}), 3)",
    "ts >= date '{{ var(\"since\") }}'",
    "ts >= current_date - 3",
]
BOUNDS_BACK = [
    "(select max(ts) - interval '3' day from {{ this }})",
    "date_add((select max(ts) from {{ this }}), -3)",
    "date_sub((select max(ts) from {{ this }}), 0)",
    "timestampadd(day, -3, (select max(ts) from {{ this }}))",
    "(select date_trunc('day', max(ts)) from {{ this }})",
    "(select date(max(ts)) - 1 from {{ this }})",
    "current_timestamp() - interval 1 day",
    "now() - interval 3 days",
    "to_date('2020-01-01')",
]
WHOLE_PARTITIONS = [
    ("id, day", "day >= (select max(day) from {{ this }})", ""),
    ("day, count(*) n", "day >= (select max(day) from {{ this }})", "group by day"),
    ("date(ts) as day, count(*) n", "date(ts) >= (select max(day) from {{ this }})", "group by 1"),
    ("day, id, rank() over (partition by day order by id) r", "day >= date '{{ var('since') }}'", ""),
]
"""Columns, condition and the end of the query."""
FIRST_ROWS = ["n = 1", "1 = n", "n <= 1", "n < 2", "id > 0 and n = 1"]
NEWEST_ROW = (
    f"select id, ts from (select id, ts, row_number() over (partition by id order by ts desc) as n\nfrom {SOURCE}{newer()}) where n = 1"
)
GUARDED_UNION = f"select id, ts from {SOURCE} {newer()}\nunion all\nselect id, ts from {USERS} {newer()}"
HALF_GUARDED_UNION = f"select id, ts from {SOURCE} {newer()}\nunion all\nselect id + 1000000 as id, ts from {USERS}"
"""Each run of dbt reads the second table as a whole."""
JOINED = f"from {SOURCE} e join {USERS} u on u.id = e.user_id"
JOINS: Mapping[str, Files] = {
    "a join": model(MERGE, f"select e.id, e.ts, u.name {JOINED}{newer(f'e.{NEWER}')}"),
    "a left join": model(MERGE, f"select e.id, e.ts, u.name {JOINED.replace('join', 'left join')}{newer(f'e.{NEWER}')}"),
    "a join in partitions": model(
        OVERWRITE,
        f"select e.day, u.name, count(*) as n {JOINED}{newer('e.day >= (select max(day) from {{ this }})')} group by e.day, u.name",
    ),
    "a guard in a WITH query": model(
        MERGE, f"with e as (select * from {SOURCE}{newer()}) select e.id, e.ts, u.name from e join {USERS} u on u.id = e.user_id"
    ),
    "a filter by another table": model(
        MERGE, f"select id, ts from {SOURCE} e where user_id in (select id from {USERS}){newer(word='and')}"
    ),
    "a table with itself": model(
        MERGE,
        f"select a.id, a.ts, count(b.v) as n from {SOURCE} a left join {SOURCE} b on b.parent = a.id{newer(f'a.{NEWER}')} group by a.id, a.ts",
    ),
    "a guard in ON": model(MERGE, f"select e.id, e.ts, u.name {JOINED}{newer(f'e.{NEWER}', 'and')}"),
    "a join in a branch": model(
        MERGE, f"select e.id, e.ts {JOINED}{newer(f'e.{NEWER}')} union all select id + 1000000 as id, ts from {USERS}"
    ),
    "a scalar subquery": model(MERGE, f"select id, ts, (select max(v) from {USERS}) as most from {SOURCE}{newer()}"),
}
"""Other tables than the guarded one are read too."""
KEPT: Mapping[str, Files] = {
    "newest row, unless it is deleted": model(
        MERGE,
        "select id, ts from (select id, ts, status, row_number() over (partition by id order by ts desc) as n"
        f" from {SOURCE}{newer()}) where n = 1 and status = 'paid'",
    ),
}
"""New rows end others of the result, which dbt keeps."""
UNGUARDED: Mapping[str, Files] = {
    "merge without a guard": model(MERGE, f"select id, ts, v from {SOURCE} where status = 'paid'"),
    "partitions without a guard": model(OVERWRITE, f"select day, count(*) as n from {SOURCE} where status = 'paid' group by day"),
    "a whole table": model(WHOLE_TABLE, f"select id, v from {SOURCE}"),
}


def taken_models() -> dict[str, Files]:
    """Name -> the files of each model that the import takes."""
    found: dict[str, Files] = {f"merge where {condition}": guarded(MERGE, condition, "id, ts, day, v") for condition in LOWER_BOUNDS}
    found |= {f"merge where ts > {bound}": guarded(MERGE, f"ts > {bound}", "id, ts, day, v") for bound in BOUNDS_BACK}
    found |= {
        f"overwrite {columns} where {condition}": guarded(OVERWRITE, condition, columns, tail)
        for columns, condition, tail in WHOLE_PARTITIONS
    }
    found |= {f"newest row, {where}": model(MERGE, first_of_each(where)) for where in FIRST_ROWS}
    found |= {"newest row": model(MERGE, NEWEST_ROW), "a guard in each branch": model(MERGE, GUARDED_UNION), "a start": started(NEWER)}
    return {**found, **STARTED_BY_CLOCK, **WINDOWED, **JOINS, **KEPT, **UNGUARDED}


# Refused

TWO_BOUNDS: Mapping[str, Files] = {
    "partitions": guarded(OVERWRITE, "date(ts) >= date('2020-01-01') and ts > (select max(ts) from {{ this }})", "id, ts, date(ts) as day"),
    "groups": guarded(
        MERGE.replace("'id'", "'day'"),
        "date(ts) >= (select max(day) from {{ this }}) and ts > timestamp '2024-03-12 11:45:00'",
        "date(ts) as day, count(*) as n",
        "group by date(ts)",
    ),
}
"""The second bound cuts through the days of the first."""
REFUSED: list[tuple[Files, str]] = [
    (guarded("materialized='incremental'", NEWER), "append-keeps-rows"),
    (guarded("materialized='incremental', unique_key='id'", NEWER), "append-keeps-rows"),
    (guarded("materialized='incremental', incremental_strategy='append', unique_key='id'", NEWER), "append-keeps-rows"),
    (guarded("materialized='incremental', incremental_strategy='merge'", NEWER), "merge-without-key"),
    (guarded("materialized='incremental', incremental_strategy='merge', unique_key='id || day'", NEWER), "merge-without-key"),
    (guarded("materialized='incremental', incremental_strategy='microbatch'", NEWER), "strategy"),
    (guarded(f"{MERGE}, merge_update_columns=['ts']", NEWER), "merge-partial"),
    (guarded(f"{MERGE}, full_refresh=false", NEWER), "never-full-refresh"),
    (guarded(f"{MERGE}, post_hook='delete from t'", NEWER), "hook"),
    (guarded(MERGE, "ts = (select max(ts) from {{ this }})"), "guard-not-lower-bound"),
    (guarded(MERGE, "ts < (select max(ts) from {{ this }})"), "guard-not-lower-bound"),
    (guarded(MERGE, "ts > (select min(ts) from {{ this }})"), "guard-not-lower-bound"),
    (guarded(MERGE, "ts > (select max(ts) from {{ this }} where id > 0)"), "guard-not-lower-bound"),
    (guarded(MERGE, "id not in (select id from {{ this }})"), "guard-not-lower-bound"),
    (guarded(MERGE, "ts > (select max(ts) from {{ this }}) or id = 1"), "guard-not-lower-bound"),
    (guarded(MERGE, "ts > (select max(ts) from {{ source('raw', 'users') }})"), "guard-not-lower-bound"),
    (guarded(MERGE, "ts > (select max(t.ts) from {{ this }} t where t.id = e.id)"), "guard-not-lower-bound"),
    (guarded(MERGE, "ts > (select max(loaded) from {{ this }})"), "guard-other-column"),
    (guarded(MERGE, NEWER, columns="id, day"), "guard-other-column"),
    (guarded(MERGE, f"{NEWER} and day >= '2020-01-01'"), "guard-several"),
    (guarded(MERGE, NEWER, columns="id, max(ts) ts, count(*) n", tail="group by id"), "guard-below-aggregate"),
    (guarded(MERGE, NEWER, columns="id, ts, row_number() over (order by id) n"), "guard-below-aggregate"),
    (guarded(MERGE, NEWER, columns="id, ts, lag(ts) over (partition by id order by ts) n"), "guard-below-aggregate"),
    (guarded(MERGE, NEWER, tail="limit 10"), "guard-below-aggregate"),
    (guarded(MERGE, NEWER, columns="id, ts, current_timestamp() as loaded_at"), "load-time"),
    (guarded("materialized='incremental', incremental_strategy='insert_overwrite'", NEWER), "overwrites-table"),
    (guarded(OVERWRITE, NEWER), "guard-not-partition"),
    (model(MERGE, "select id, ts from {{ source('raw', 'events') }} union all select id, ts from {{ this }}"), "reads-itself"),
    (model(MERGE, "{% if is_incremental() %}select 1 as id{% else %}select 2 as id{% endif %}"), "guard-changes-query"),
    (
        model(MERGE, "select id, {% if is_incremental() %}1{% else %}2{% endif %} as x from {{ source('raw', 'events') }}"),
        "guard-changes-query",
    ),
    (
        model(
            MERGE,
            "select u.id, e.ts from {{ source('raw', 'users') }} u left join (select * from {{ source('raw', 'events') }}"
            f"{{% if is_incremental() %}} where {NEWER}{{% endif %}}) e on e.id = u.id",
        ),
        "guard-below-join",
    ),
    (
        model(
            MERGE,
            f"with e as (select * from {{{{ source('raw', 'events') }}}} {{% if is_incremental() %}}where {NEWER}{{% endif %}})\n"
            "select a.id, b.ts from e a join e b on a.id = b.parent",
        ),
        "guard-below-join",
    ),
    # In the ON of a join that keeps rows without a partner.
    (
        model(MERGE, f"select e.id, e.ts, u.name {JOINED.replace('join', 'left join')}{newer(f'e.{NEWER}', 'and')}"),
        "guard-changes-query",
    ),
    (
        model(MERGE, f"select e.id, e.ts {JOINED}{newer(f'e.{NEWER}', 'and')} full join {USERS} w on w.id = e.id"),
        "guard-changes-query",
    ),
    (TWO_BOUNDS["partitions"], "guard-not-partition"),
    (TWO_BOUNDS["groups"], "guard-below-aggregate"),
]
