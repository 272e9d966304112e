"""`mvbuild compile`: target/compiled and the manifest; with --select, the SQL of models on stdout."""

from __future__ import annotations

import click

from mvbuild.cli.options import ListCommand, Options, project_options, selection_options


@click.command("compile", cls=ListCommand)
@project_options
@selection_options
@click.option("--inline", help="Print the SQL of this query, which may use ref() and macros, and write nothing.")
def command(options: Options, select: tuple[str, ...], exclude: tuple[str, ...], inline: str | None) -> int:
    """Render, parse and resolve every model. Needs no catalog and no Spark. With --select the compiled SQL is printed."""
    from mvbuild.api import compilation
    from mvbuild.cli.output import note, report, say
    from mvbuild.graph.definition import definition
    from mvbuild.graph.model import ModelNode, SeedNode
    from mvbuild.lineage.check import column_findings
    from mvbuild.project.seeds import seed_problems
    from mvbuild.selection.select import select as select_nodes

    graph = options.graph(inline=inline)
    if inline is not None:
        node = next(node for node in graph.models if node.model.name == compilation.INLINE)
        if node.id in graph.undefined:
            return 2
        click.echo(definition(graph, node).text.strip())
        return 0
    note(graph.project)
    found = [*seed_problems(node.seed for node in graph.nodes.values() if isinstance(node, SeedNode)), *column_findings(graph)]
    if compilation.write_artifacts(graph):
        from mvbuild.unit_tests.query import wrong_unit_tests

        found += wrong_unit_tests(graph)
    failed = report(found) == 2 or bool(graph.problems)
    models = list(graph.models)
    if select or exclude:
        chosen, warnings = select_nodes(graph, select, exclude)
        report(warnings)
        for node in graph.models:
            if node.id in chosen and isinstance(node, ModelNode) and node.id not in graph.undefined:
                click.echo(f"-- {node.id}\n{definition(graph, node).text.strip()}\n")
        return 2 if failed else 0
    if failed:
        return 2
    path = graph.project.target_path
    counted = (f"{n} {kind}{'s' * (n != 1)}" for n, kind in ((len(models), "model"), (len(graph.tests), "data test")))
    say(f"Compiled {' and '.join(counted)} into {path}.")
    return 0
