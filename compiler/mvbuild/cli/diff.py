"""`mvbuild diff --branch NAME`: the rows of a branch, compared with those of main."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from mvbuild.cli.options import ListCommand, Options, env, project_options, selection_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mvbuild.verify.comparison import ColumnDifference, Comparison

_MARKS = {"added": "+", "removed": "-", "before": "<", "after": ">"}


@click.command("diff", cls=ListCommand)
@project_options
@click.option("--branch", "name", required=True, envvar=env("BRANCH"), help="The branch.")
@selection_options
@click.option("--key", multiple=True, help="Key columns. Default: the columns of a `unique` test, or of the GROUP BY.")
@click.option("--limit", type=click.IntRange(0), default=5, show_default=True, help="How many differing rows to show.")
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(
    options: Options, name: str, select: tuple[str, ...], exclude: tuple[str, ...], key: tuple[str, ...], limit: int, output: str
) -> int:
    """Compare each MV and seed of a branch with main: rows added, removed and changed, figures for each column, and samples."""
    from mvbuild import api
    from mvbuild.cli.modes import is_quiet
    from mvbuild.cli.progress import Progress

    graph = options.graph()
    with Progress(graph, quiet=is_quiet() or output == "json") as progress:
        found = api.diff(graph, name, select=select, exclude=exclude, key=key, limit=limit, on_event=progress)
    if output == "json":
        click.echo(json.dumps([to_object(one) for one in found], default=str, indent=2))
    else:
        click.echo("\n\n".join("\n".join(comparison_lines(one)) for one in found) or "the branch has no rows of its own")
    return 0


def comparison_lines(one: Comparison) -> list[str]:
    """The text output."""
    by = f"by {', '.join(one.key)}" if one.key else "whole rows: no key is known; choose one with --key"
    rows = f"{one.rows_before:,} rows on main, {one.rows_after:,} on the branch"
    lines = [f"{one.table}  ({by})", f"  {rows}: {one.added:,} added, {one.removed:,} removed, {one.changed:,} changed"]
    lines += [f"  {line}" for column in one.columns for line in _column(column)]
    if one.samples:
        lines.append(f"    {' | '.join(one.sample_columns)}")
    return lines + [f"  {_MARKS[what]} {' | '.join(map(str, row))}" for what, row in one.samples]


def _column(column: ColumnDifference) -> list[str]:
    from mvbuild.verify.comparison import STATISTICS

    if column.before is None:
        return [f"column {column.name}: new"]
    if column.after is None:
        return [f"column {column.name}: gone"]
    moved = [f"{of} {a} -> {b}" for of, a, b in zip(STATISTICS, column.before, column.after, strict=True) if a != b]
    changed = [f"{column.changed:,} changed"] if column.changed else []
    return [f"column {column.name}: {', '.join([*changed, *moved])}"] if changed or moved else []


def to_object(one: Comparison) -> dict[str, Any]:
    """The JSON output."""
    from mvbuild.verify.comparison import STATISTICS

    def figures(values: Sequence[Any] | None) -> dict[str, Any] | None:
        return dict(zip(STATISTICS, values, strict=True)) if values is not None else None

    return {
        "table": str(one.table),
        "key": list(one.key),
        "rows": {"main": one.rows_before, "branch": one.rows_after},
        "added": one.added,
        "removed": one.removed,
        "changed": one.changed,
        "columns": [{"name": c.name, "changed": c.changed, "main": figures(c.before), "branch": figures(c.after)} for c in one.columns],
        "samples": [{"row_is": what, "row": dict(zip(one.sample_columns, row, strict=True))} for what, row in one.samples],
    }
