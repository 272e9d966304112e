"""`mvbuild ls`: the nodes of the project, one per line."""

from __future__ import annotations

import json
from typing import Any

import click

from mvbuild.cli.options import ListCommand, Options, project_options, selection_options

_KEYS = ("name", "resource_type", "package_name", "original_file_path", "unique_id", "alias", "config", "tags", "depends_on", "fqn")


@click.command("ls", cls=ListCommand)
@project_options
@selection_options
@click.option("--output", type=click.Choice(["selector", "name", "path", "json"]), default="selector", show_default=True)
@click.option("--output-keys", multiple=True, help="Keys to print for each node with --output json.")
def command(options: Options, select: tuple[str, ...], exclude: tuple[str, ...], output: str, output_keys: tuple[str, ...]) -> int:
    """List models, seeds, sources, data tests, unit tests and exposures. Needs no catalog and no Spark."""
    from mvbuild.artifacts.exposures import exposures
    from mvbuild.artifacts.manifest import entries
    from mvbuild.artifacts.unit_tests import unit_tests
    from mvbuild.cli.output import report
    from mvbuild.selection.select import select_all

    graph = options.graph()
    chosen, warnings = select_all(graph, select, exclude, units=bool({"unit_test", "exposure"} & {*graph.reading.resource_types}))
    report(warnings)
    wanted = {*chosen}
    listed = sorted((entry for _, entry in entries(graph, wanted)), key=lambda entry: entry["resource_type"] == "source")
    listed += (
        entry for id, entry in (unit_tests(graph) if any(id.startswith("unit_test.") for id in wanted) else {}).items() if id in wanted
    )
    listed += (entry for id, entry in exposures(graph).items() if id in wanted)
    keys = [k for word in output_keys for k in word.replace(",", " ").split()] or list(_KEYS)
    for node in listed:
        click.echo(_line(node, output, keys))
    return 0


def _line(node: dict[str, Any], output: str, keys: list[str]) -> str:
    if output == "json":
        return json.dumps({k: node.get(k) for k in keys})
    if output == "name":
        return str(node["name"])
    if output == "path":
        return str(node["original_file_path"])
    if node["resource_type"] == "unit_test":
        return f"unit_test:{node['package_name']}.{node['name']}"
    if node["resource_type"] == "exposure":
        return f"exposure:{node['package_name']}.{node['name']}"
    prefix = "source:" if node["resource_type"] == "source" else ""
    return prefix + ".".join(node["fqn"])
