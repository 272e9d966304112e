"""Steps of a history that are not a table's own: on the storage of an MV, on views of the catalog, and on the session of the reader."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from spark.histories import despite_two_specs
from spark.history_features import CatalogView
from spark.projects import Project

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata")


def storage_step(project: Project, what: str, mv: str, chance: random.Random, log: list[str]) -> None:
    """A change of an MV's storage table by another writer."""
    table = f"main.{mv}__storage"
    for statement in _storage_statements(project, what, table, chance):
        log.append(statement)
        with despite_two_specs():
            project.sql(statement)


def auxiliary_step(project: Project, chance: random.Random, log: list[str]) -> str:
    """A change of an auxiliary view by another writer: what was done, empty if there is no such view."""
    views = [".".join(found) for found in project.catalog.list_tables("main") if "__auxiliary_" in found[1]]
    if not views:
        return ""
    table = chance.choice(sorted(views))
    metadata = project.table(table).metadata
    columns = [f.name for f in project.table(table).schema().fields]
    other = f"by others {len(metadata.schemas)}"
    statements = {
        "drop": [f"DROP TABLE lake.{table}"],
        "purge": [f"DROP TABLE lake.{table} PURGE"],
        "empty": [f"DELETE FROM lake.{table}"],
        "double": [f"INSERT INTO lake.{table} SELECT * FROM lake.{table}"],
        "compact": [f"CALL lake.system.rewrite_data_files(table => '{table}', options => map('rewrite-all', 'true'))"],
        "expire": [
            f"CALL lake.system.expire_snapshots(table => '{table}', older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 1)"
        ],
        "add a column": [f"ALTER TABLE lake.{table} ADD COLUMN `{other}` INT"],
        "rename a column": [f"ALTER TABLE lake.{table} RENAME COLUMN `{columns[-1]}` TO `{other}`"],
    }
    ids = [s.snapshot_id for s in metadata.snapshots if s.snapshot_id != metadata.current_snapshot_id]
    if ids:
        statements["roll back"] = [f"CALL lake.system.set_current_snapshot('{table}', {chance.choice(ids)})"]
    if len(columns) > 1:
        pairs = ((columns[0], other), (columns[1], columns[0]), (other, columns[1]))
        statements["swap columns"] = [f"ALTER TABLE lake.{table} RENAME COLUMN `{one}` TO `{to}`" for one, to in pairs]
    what = chance.choice(list(statements))
    for statement in statements[what]:
        log.append(statement)
        project.sql(statement)
    return f"auxiliary: {what}"


def _storage_statements(project: Project, what: str, table: str, chance: random.Random) -> list[str]:
    calls = {
        "compact_storage": f"rewrite_data_files(table => '{table}', options => map('rewrite-all', 'true'))",
        "compact_storage_deletes": f"rewrite_position_delete_files(table => '{table}', options => map('rewrite-all', 'true'))",
        "expire_storage": f"expire_snapshots(table => '{table}', older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 1)",
    }
    if what in calls:
        return [f"CALL lake.system.{calls[what]}"]
    metadata = project.table(table).metadata
    columns = [f.name for f in project.table(table).schema().fields]
    partitioned = {f.source_id for spec in metadata.partition_specs for f in spec.fields}
    bound = partitioned | {f.source_id for o in metadata.sort_orders for f in o.fields}
    free = [f.name for f in project.table(table).schema().fields if f.field_id not in bound]
    # Iceberg lets no other column take the name of an identity partition.
    renamable = [f.name for f in project.table(table).schema().fields if f.field_id not in partitioned]
    alter = f"ALTER TABLE lake.{table}"
    if what == "add_storage_column":
        return [f"{alter} ADD COLUMN `by others` INT"] if "by others" not in columns else []
    if what == "swap_storage_names" and len(renamable) > 1:
        one, other = chance.sample(renamable, 2)
        return [f"{alter} RENAME COLUMN `{a}` TO `{b}`" for a, b in ((one, "by others too"), (other, one), ("by others too", other))]
    if what == "drop_storage_column" and len(columns) > 1 and free:
        return [f"{alter} DROP COLUMN `{chance.choice(free)}`"]
    if what == "move_storage_column":
        return [f"{alter} ALTER COLUMN `{chance.choice(columns)}` FIRST"]
    return []


def create_view(project: Project, view: CatalogView, at: int, log: list[str], *, replace: bool = False) -> None:
    """Text number `at` of the view, in the catalog and namespace that it uses."""
    how = "CREATE OR REPLACE VIEW" if replace else "CREATE VIEW"
    statements = [
        f"USE {view.uses}",
        f"{how} {view.full_name} {view.columns} AS {view.texts[at % len(view.texts)]}",
        "USE spark_catalog.default",
    ]
    for statement in statements:
        log.append(statement)
        project.sql(statement)


def view_step(project: Project, what: str, view: CatalogView, at: int, log: list[str]) -> None:
    if what == "recreate_view":
        log.append(f"DROP VIEW {view.full_name}")
        project.sql(f"DROP VIEW {view.full_name}")
    create_view(project, view, at, log, replace=what == "replace_view")


def session_step(project: Project, what: str, chance: random.Random, log: list[str]) -> None:
    """The next settings of the session."""
    if what == "set_bound":
        statement = f"SET VARIABLE bound = {chance.randint(0, 3)}"
        log.append(statement)
        project.sql(statement)
        return
    key, value = ("cut", chance.randint(0, 3)) if what == "set_cut" else ("spark.sql.session.timeZone", chance.choice(ZONES))
    log.append(f"SET {key} = {value}")
    project.spark.conf.set(key, str(value))


def begin_session(project: Project, features: tuple[str, ...], chance: random.Random, log: list[str]) -> None:
    """What the session of a history has before anything is made."""
    if "variables" in features:
        if not project.spark.version.startswith("3."):
            project.sql("DECLARE OR REPLACE VARIABLE bound INT DEFAULT 1")
        session_step(project, "set_cut", chance, log)
    zone = chance.choice(ZONES[1:]) if "zones" in features else "UTC"
    log.append(f"SET spark.sql.session.timeZone = {zone}")
    project.spark.conf.set("spark.sql.session.timeZone", zone)


def settings(project: Project, query: str) -> Mapping[str, Any]:
    """What of the session a query depends on."""
    found: dict[str, Any] = {"zone": project.spark.conf.get("spark.sql.session.timeZone")}
    if "${cut}" in query:
        found["cut"] = project.spark.conf.get("cut")
    if "bound" in query:
        found["bound"] = project.sql("SELECT system.session.bound")[0][0]
    return found
