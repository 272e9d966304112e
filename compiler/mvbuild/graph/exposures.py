"""the exposures of a project + its nodes -> ExposureNodes: what each one reads."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from mvbuild.diagnostics import Diagnostic, ProjectError, did_you_mean, error
from mvbuild.graph.access import refusal
from mvbuild.graph.model import ExposureNode, Graph, ModelNode, NodeId, SeedNode, TableNode
from mvbuild.project.exposures import Read, read_exposures


def exposures_of(graph: Graph) -> tuple[ExposureNode, ...]:
    """Raises ProjectError with every name that the project does not have."""
    known = _names(graph)
    versions = {node.model.name.lower() for node in graph.models if node.model.version is not None}
    report: list[Diagnostic] = []
    nodes = []
    for exposure in read_exposures(graph.project):
        reads = [_id(read, known, versions, report) for read in exposure.reads]
        for read, id_ in zip(exposure.reads, reads, strict=True):
            report.extend(refusal(f"The exposure '{exposure.name}'", graph.nodes.get(id_ or ""), read.span))
        found = tuple(dict.fromkeys(id for id in reads if id is not None))
        nodes.append(ExposureNode(id=exposure.id(graph.project.name), exposure=exposure, reads=found))
    if report:
        raise ProjectError(report)
    return tuple(nodes)


def _names(graph: Graph) -> Mapping[tuple[str, str, str], NodeId]:
    found: dict[tuple[str, str, str], NodeId] = {}
    for id_, node in graph.nodes.items():
        if isinstance(node, ModelNode):
            found["ref", "", node.model.name.lower()] = id_
            if node.model.version is not None and node.model.version.is_latest:
                found["ref", "", node.model.version.model.lower()] = id_
        elif isinstance(node, SeedNode):
            found["ref", "", node.seed.name.lower()] = id_
        elif isinstance(node, TableNode) and node.source:
            found["source", node.source.source.lower(), node.source.name.lower()] = id_
    # A source may describe the table of a seed or model, which is the node then.
    tables = {(node.identifier.namespace, node.identifier.name): id_ for id_, node in graph.nodes.items()}
    for source in graph.project.sources:
        key = ("source", source.source.lower(), source.name.lower())
        if key not in found and (source.namespace, source.identifier) in tables:
            found[key] = tables[source.namespace, source.identifier]
    return found


def _id(read: Read, known: Mapping[tuple[str, str, str], NodeId], versions: Collection[str], report: list[Diagnostic]) -> NodeId | None:
    """`versions`: names that ref() does not accept without `v=`."""
    found = known.get((read.kind, read.source, read.name))
    if found is None and read.kind == "ref":
        names = [name for kind, _, name in known if kind == "ref" and name not in versions]
        report.append(error("unresolved-ref", f"Unknown model or seed '{read.name}'", read.span, help=did_you_mean(read.name, names)))
    elif found is None:
        names = [f"{source}.{name}" for kind, source, name in known if kind == "source"]
        full_name = f"{read.source}.{read.name}"
        report.append(error("unresolved-source", f"Unknown source table '{full_name}'", read.span, help=did_you_mean(full_name, names)))
    return found
