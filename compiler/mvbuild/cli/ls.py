"""`mvbuild ls`: the nodes of the project, one per line."""

from __future__ import annotations

import json
from typing import Any

import click

from mvbuild.cli.options import ListCommand, Options, project_options, selection_options

KNOWN = frozenset(
    """
    access alias attached_node build_path checksum column_name columns compiled compiled_code compiled_path config constraints contract
    created_at database defer_relation depends_on deprecation_date description doc_blocks docs expect external extra_ctes
    extra_ctes_injected file_key_name fqn freshness functions given group identifier label language latest_version loaded_at_field
    loaded_at_query loader maturity meta metrics model name original_file_path overrides owner package_name patch_path path primary_key
    quoting raw_code refs relation_name resource_type root_path schema source_description source_meta source_name sources tags
    test_metadata tested_node_unique_id time_spine type unique_id unrendered_config url version versions
    """.split()
)
"""The keys of dbt's manifest, of which mvbuild has most: callers ask for keys that only some kinds of nodes have."""
_KEYS = ("name", "resource_type", "package_name", "original_file_path", "unique_id", "alias", "config", "tags", "depends_on", "fqn")


@click.command("ls", cls=ListCommand)
@project_options
@selection_options
@click.option("--output", type=click.Choice(["selector", "name", "path", "json"]), default="selector", show_default=True)
@click.option("--output-keys", multiple=True, help="Keys to print for each node with --output json, such as name or config.tags.")
def command(options: Options, select: tuple[str, ...], exclude: tuple[str, ...], output: str, output_keys: tuple[str, ...]) -> int:
    """List models, seeds, sources, data tests, unit tests and exposures. Needs no catalog and no Spark."""
    from mvbuild.artifacts.exposures import exposures
    from mvbuild.artifacts.manifest import entries
    from mvbuild.artifacts.unit_tests import unit_tests
    from mvbuild.cli.output import report
    from mvbuild.diagnostics import did_you_mean, error
    from mvbuild.selection.select import select_all

    keys = [k for word in output_keys for k in word.replace(",", " ").split()] or list(_KEYS)
    if unknown := [key for key in keys if key.partition(".")[0] not in KNOWN]:
        help = did_you_mean(unknown[0], KNOWN)
        help = help if help.startswith("Did") else f"Known keys: {', '.join(sorted(KNOWN))}."
        return report([error("command-line", f"Unknown key '{unknown[0]}' in --output-keys", help=help)])
    graph = options.graph(is_kept=False)
    chosen, warnings = select_all(graph, select, exclude, units=bool({"unit_test", "exposure"} & {*graph.reading.resource_types}))
    report(warnings)
    wanted = {*chosen}
    listed = sorted((entry for _, entry in entries(graph, wanted)), key=lambda entry: entry["resource_type"] == "source")
    listed += (
        entry for id, entry in (unit_tests(graph) if any(id.startswith("unit_test.") for id in wanted) else {}).items() if id in wanted
    )
    listed += (entry for id, entry in exposures(graph).items() if id in wanted)
    for node in listed:
        click.echo(_line(node, output, keys))
    return 0


def _value(node: Any, key: str) -> Any:
    """As in dbt, `config.materialized` is a key of a key."""
    for part in key.split("."):
        node = node.get(part) if isinstance(node, dict) else None
    return node


def _line(node: dict[str, Any], output: str, keys: list[str]) -> str:
    if output == "json":
        return json.dumps({k: _value(node, k) for k in keys})
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
