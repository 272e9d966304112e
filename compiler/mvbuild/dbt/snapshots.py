"""ImportState -> each snapshot as an MV with the same columns, if its query reads every version of a row; otherwise why it stays in dbt."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from sqlglot import exp

from mvbuild.dataclass import dataclass
from mvbuild.dbt.blocks import lexed
from mvbuild.dbt.bounds import NotProven
from mvbuild.dbt.climb import conjuncts
from mvbuild.dbt.config_calls import config_calls
from mvbuild.dbt.drafts import Draft
from mvbuild.dbt.guards import tree_of
from mvbuild.dbt.import_state import ImportState, SnapshotImport
from mvbuild.dbt.models import merged
from mvbuild.dbt.read import entries_of, get, is_of_run, text_of
from mvbuild.dbt.rendering import Renderings
from mvbuild.dbt.snapshot_yaml import advice, snapshot_nodes
from mvbuild.dbt.template_uses import uses_of
from mvbuild.dbt.templates import refusal
from mvbuild.parse.determinism import nondeterministic_word
from mvbuild.parse.sql import parse_query
from mvbuild.project.folders import read_folders
from mvbuild.project.yaml_spans import MapNode, Node
from mvbuild.source import SourceFile

_NAME = re.compile(r"[A-Za-z_]\w*")
_ENDS = ("invalidate_hard_deletes", "hard_deletes")
_OTHER_COLUMNS = ("dbt_valid_to_current", "snapshot_meta_column_names")
_COMBINES = ("joins", "group", "having", "limit", "distinct", "qualify", "laterals")
_DECIDES = ("strategy", "unique_key", "updated_at", "check_cols", "enabled", "schema", "alias", *_ENDS, *_OTHER_COLUMNS)
"""Settings that decide what a snapshot is; elsewhere than in the block they are not followed."""


@dataclass(frozen=True, slots=True)
class _History:
    """The settings of a snapshot by timestamps."""

    keys: tuple[str, ...]
    updated_at: str
    schema: str | None


def judge_snapshots(work: ImportState, renderings: Renderings) -> None:
    """Judge every snapshot that is a block of a SQL file."""
    for one in work.snapshot_blocks.values():
        try:
            _judge(work, one, renderings)
        except NotProven as exc:
            one.item.add(exc.code, str(exc), one.item.span, help=advice(one.config))


def _judge(work: ImportState, one: SnapshotImport, renderings: Renderings) -> None:
    rendered = renderings.renderer.render(SourceFile(one.path, one.body), one.name)
    one.config = {**_schema_of_folder(work, one), **merged(rendered.layers)}
    history = _history(one.config)
    if _is_configured_elsewhere(work, one.name):
        raise _stays("Settings outside of its block decide what it is")
    if any(d.severity == "error" for d in rendered.diagnostics) or rendered.text is None:
        raise _stays("Its query cannot be rendered")
    wrong = next((found for use in uses_of(SourceFile(one.path, one.body)).uses if (found := refusal(work, use))), "")
    if word := nondeterministic_word(rendered.text.text):
        wrong = f"Its query uses '{word}'"
    if wrong:
        raise _stays(wrong)
    rank = _rank_of_versions(tree_of(rendered.text.text), history)
    every = _without(one.body, rank)
    again = renderings.renderer.render(SourceFile(one.path, every), one.name)
    if again.text is None or tree_of(again.text.text) != _with_true(tree_of(rendered.text.text), rank):
        raise _stays(f"The condition '{rank} = 1' cannot be cut out of its text")
    query, _ = parse_query(again.text)
    for read in query.reads if query else ():
        if read.kind in ("ref", "source"):
            name = read.parts[0].lower()
            one.reads[name if read.kind == "ref" else f"source.{name}"] = one.item.span
    one.written = _written(_without_config(every), history)
    one.test = _test(one.name, history)
    one.item.add("snapshot-of-versions", "It becomes an MV of all versions that its base table has")


# What it is


def _history(config: Mapping[str, Any]) -> _History:
    """The settings of a snapshot whose versions have their times in rows. Raises NotProven."""
    if config.get("strategy") != "timestamp":
        raise _stays("Its versions begin when a run of dbt sees them, which only dbt's table knows")
    if any(config.get(name) not in (None, False, "ignore") for name in _ENDS):
        raise _stays("It ends a version when a run of dbt does not find the row any more, which only dbt's table knows")
    other = next((name for name in _OTHER_COLUMNS if config.get(name)), None)
    given = config.get("unique_key")
    keys = [given] if isinstance(given, str) else given if isinstance(given, list) else []
    updated = config.get("updated_at")
    if other or not keys or not all(isinstance(name, str) and _NAME.fullmatch(name) for name in (*keys, updated)):
        raise _stays(f"'{other}' changes its columns" if other else "'unique_key' and 'updated_at' are not plain columns")
    if config.get("schema") or config.get("namespace") or config.get("alias"):
        raise _stays("Its name is not given by 'target_schema' alone")
    schema = config.get("target_schema")
    if is_of_run(schema):
        raise _stays("Its 'target_schema' has a template")
    return _History(keys=tuple(keys), updated_at=str(updated), schema=str(schema) if schema else None)


def _schema_of_folder(work: ImportState, one: SnapshotImport) -> dict[str, Any]:
    """The `target_schema` that the project file sets for the folder of a snapshot."""
    project = work.project
    node = get(project.tree, "snapshots")
    file = next(file for file in project.files["snapshot"] if file.path == one.path)
    known = {*project.folders["snapshot"], (*file.found.folders, file.stem)}
    rendered = project.rendered(node) if node else None
    folders = read_folders(rendered, project=project.name, known=known, settings=("target_schema",), report=[])
    values = merged(folders.of(file.found.folders, file.stem))
    return {"target_schema": values["target_schema"]} if values.get("target_schema") else {}


def _is_configured_elsewhere(work: ImportState, name: str) -> bool:
    """Whether the project file has settings of snapshots that decide something, or a YAML file such settings of this one."""
    own = (node for node in snapshot_nodes(work) if (text_of(node, "name") or "").lower() == name.lower())
    return _decides(get(work.project.tree, "snapshots")) or any(map(_decides, own))


def _decides(node: Node | None) -> bool:
    return any(e.key.removeprefix("+") in _DECIDES or _decides(e.node) for e in entries_of(node)) if isinstance(node, MapNode) else False


def _rank_of_versions(tree: exp.Expr, history: _History) -> str:
    """The column by which a query keeps the newest version of each key: `row_number() over (partition by key order by updated_at desc)`.
    Without the condition that it is 1, the query returns all versions. Raises NotProven."""
    nothing = _stays("mvbuild cannot prove that its input has every version of a row")
    if not isinstance(tree, exp.Select) or any(
        tree.args.get(k) for k in ("joins", "group", "having", "limit", "distinct", "qualify", "laterals")
    ):
        raise nothing
    ranks = [rank for condition in conjuncts(tree.args.get("where")) if (rank := _is_one(condition))]
    names = {projection.alias_or_name.lower() for projection in tree.expressions}
    inner = _source_of(tree)
    if len(ranks) != 1 or inner is None or ranks[0].lower() in names or any(p.is_star for p in tree.expressions):
        raise nothing
    if not _is_only_window(tree, inner, ranks[0], history):
        raise nothing
    if not all(_passes(tree, name) for name in (*history.keys, history.updated_at)):
        raise nothing
    return ranks[0]


def _is_one(condition: exp.Expr) -> str | None:
    """The column that a condition compares with 1."""
    if not isinstance(condition, exp.EQ) or not isinstance(condition.this, exp.Column):
        return None
    right = condition.expression
    return str(condition.this.name) if isinstance(right, exp.Literal) and not right.is_string and right.name == "1" else None


def _source_of(tree: exp.Select) -> exp.Select | None:
    """The only query that a SELECT reads: in FROM, or the WITH query that FROM names."""
    source = tree.args["from_"].this if tree.args.get("from_") else None
    inner: exp.Expr | None = source.unnest() if isinstance(source, exp.Subquery) else None
    if inner is None:
        named = [cte.this for cte in tree.find_all(exp.CTE) if isinstance(source, exp.Table) and cte.alias.lower() == source.name.lower()]
        inner = named[0] if len(named) == 1 else None
    return inner if isinstance(inner, exp.Select) else None


def _is_only_window(tree: exp.Select, inner: exp.Select, rank: str, history: _History) -> bool:
    """Whether nothing in the query but the rank combines rows, and the rank goes by the key and the time."""
    window = next((p.this for p in inner.expressions if isinstance(p, exp.Alias) and p.alias.lower() == rank.lower()), None)
    combines = [n for n in tree.find_all(exp.Window, exp.AggFunc, exp.Group, exp.Limit, exp.Distinct) if n is not window]
    if not isinstance(window, exp.Window) or not isinstance(window.this, exp.RowNumber) or any(n is not window.this for n in combines):
        return False
    by = [key.name.lower() for key in window.args.get("partition_by") or [] if isinstance(key, exp.Column)]
    order = window.args.get("order")
    first = order.expressions[0] if order and order.expressions else None
    newest = isinstance(first, exp.Ordered) and bool(first.args.get("desc")) and first.this.name.lower() == history.updated_at.lower()
    return newest and sorted(by) == sorted(k.lower() for k in history.keys) and len(by) == len(window.args["partition_by"])


def _passes(tree: exp.Select, name: str) -> bool:
    """Whether a column of the result is the column of the same name of what it reads."""
    found = [p for p in tree.expressions if p.alias_or_name.lower() == name.lower()]
    return len(found) == 1 and isinstance(found[0].unalias(), exp.Column) and found[0].unalias().name.lower() == name.lower()


def _with_true(tree: exp.Expr, rank: str) -> exp.Expr:
    condition = next(c for c in conjuncts(tree.args.get("where")) if _is_one(c) == rank)
    condition.replace(exp.true())
    return tree


# What is written


def _without(body: str, rank: str) -> str:
    """The text of the block without the condition on the rank."""
    found = list(re.finditer(rf"(?<![\w.])(?:\w+\.)?{re.escape(rank)}\s*=\s*1\b", body, re.IGNORECASE))
    if len(found) != 1:
        raise _stays(f"The condition '{rank} = 1' cannot be cut out of its text")
    return body[: found[0].start()] + "true" + body[found[0].end() :]


def _without_config(body: str) -> str:
    file = SourceFile("snapshot.sql", body)
    draft, text = Draft(file), lexed(file)
    for call in config_calls(text) if text else ():
        if call.whole is None:
            raise _stays("Its config() call is a part of another tag")
        draft.remove(call.whole.start, call.whole.end)
    return draft.result.text.strip().rstrip(";").rstrip()


def _written(query: str, history: _History) -> str:
    keys, time = ", ".join(f"`{key}`" for key in history.keys), f"`{history.updated_at}`"
    hashed = " || '|' || ".join(f"coalesce(cast(`{name}` as string), '')" for name in (*history.keys, history.updated_at))
    namespace = f", namespace={history.schema!r}" if history.schema else ""
    return (
        f"{{{{ config(materialized='materialized_view'{namespace}) }}}}\n"
        f"select\n    *,\n    md5({hashed}) as dbt_scd_id,\n    {time} as dbt_updated_at,\n    {time} as dbt_valid_from,\n"
        f"    lead({time}) over (partition by {keys} order by {time}) as dbt_valid_to\nfrom (\n{query}\n) as versions\n"
    )


def _test(name: str, history: _History) -> str:
    columns = ", ".join(f"`{column}`" for column in (*history.keys, history.updated_at))
    head = "-- A version begins when the one before it ends; the result is the same only while no two begin at once.\n"
    return f"{head}select {columns}\nfrom {{{{ ref('{name}') }}}}\ngroup by {columns}\nhaving count(*) > 1\n"


def _stays(why: str) -> NotProven:
    return NotProven("snapshot", why)


def files_of(work: ImportState) -> Iterator[tuple[str, str, SnapshotImport]]:
    """Path and text of what is written for the snapshots that are taken."""
    models, tests = work.project.paths["model"][0], work.project.paths["test"][0]
    for one in work.snapshot_blocks.values():
        if one.item.verdict != "refused":
            yield f"{models}/snapshots/{one.name}.sql", one.written, one
            yield f"{tests}/{one.name}_versions.sql", one.test, one
