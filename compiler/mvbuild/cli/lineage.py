"""`mvbuild lineage`: where the columns of a model come from, or what is made from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mvbuild.cli.options import Options, project_options
from mvbuild.cli.proposals import names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mvbuild.graph.model import Node
    from mvbuild.lineage.model import Bound, Origin
    from mvbuild.lineage.trace import Direction, LineageTree


@click.command("lineage")
@click.argument("name", metavar="MODEL[.COLUMN]", shell_complete=names)
@click.option(
    "--upstream", "direction", flag_value="upstream", default="upstream", help="Upstream: the columns it is computed from (the default)."
)
@click.option("--downstream", "direction", flag_value="downstream", help="Downstream: the columns computed from it.")
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@project_options
def command(options: Options, name: str, direction: Direction, output: str) -> int:
    """Show the column-level lineage of a model, a seed or a table. Reads schemas.lock, or the catalog if there is no lock. Needs no
    Spark."""
    import json

    from mvbuild import api
    from mvbuild.cli.output import report
    from mvbuild.lineage.model import Origin
    from mvbuild.lineage.trace import as_json, find

    bound, warnings = api.lineage(options.graph(), of=name)
    report(warnings)
    node, column = find(bound, name)
    if output == "json":
        click.echo(json.dumps(as_json(bound, node, column, direction), indent=2, ensure_ascii=False))
    elif column is None:
        click.echo(_of_node(bound, node, direction))
    else:
        click.echo("\n".join(_of_column(bound, Origin(node.id, column), direction)))
    return 0


def _of_node(bound: Bound, node: Node, direction: Direction) -> str:
    from mvbuild.cli.output import table
    from mvbuild.lineage.model import Origin
    from mvbuild.lineage.trace import flat, label, named, tree

    rows = []
    for column in bound.known(node.id):
        origin = Origin(node.id, column.name)
        others = bound.origins(node.id, column.name) if direction == "upstream" else flat(tree(bound, origin, direction))
        names = sorted(named(bound, o) for o in others if o != origin)
        unsure = direction == "upstream" and bound.is_unsure(node.id, column.name)
        rows.append(
            (column.name, column.type or "unknown", ", ".join([*names, *(["and maybe others" if names else "unknown"] if unsure else [])]))
        )
    lines = [table((label(node), "type", "comes from" if direction == "upstream" else "goes into"), rows)]
    if node.id not in bound.columns:
        lines.append("There may be more columns: not everything it reads is known.")
    if direction == "upstream" and bound.indirect(node.id):
        lines.append(_rows_line(bound, bound.indirect(node.id)))
    return "\n".join(lines)


def _of_column(bound: Bound, origin: Origin, direction: Direction) -> Iterator[str]:
    from mvbuild.lineage.trace import affected, label, tree

    yield from _tree(bound, tree(bound, origin, direction), "", "")
    if direction == "downstream":
        nodes = [label(bound.graph.nodes[id]) for id in affected(bound, origin)]
        if nodes:
            yield f"It decides which rows are in: {', '.join(nodes)}"
        return
    if bound.is_unsure(origin.node, origin.column):
        yield "It may also come from other columns: not every name could be resolved."
    if bound.indirect(origin.node):
        yield _rows_line(bound, bound.indirect(origin.node))


def _rows_line(bound: Bound, origins: frozenset[Origin]) -> str:
    from mvbuild.lineage.trace import named

    return f"The rows depend on: {', '.join(sorted(named(bound, o) for o in origins))}"


def _tree(bound: Bound, step: LineageTree, before: str, below: str) -> Iterator[str]:
    from mvbuild.lineage.trace import named

    known = bound.column(step.origin.node, step.origin.column)
    type_ = f"  {known.type}" if known and known.type else ""
    yield f"{before}{named(bound, step.origin)}{type_}{'  (see above)' if step.again else ''}"
    for i, inner in enumerate(step.steps):
        last = i == len(step.steps) - 1
        yield from _tree(bound, inner, below + ("└─ " if last else "├─ "), below + ("   " if last else "│  "))
