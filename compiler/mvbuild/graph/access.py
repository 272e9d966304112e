"""Graph -> what its groups and the access of its models forbid, as in dbt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from mvbuild.diagnostics import Diagnostic, Note, did_you_mean, error
from mvbuild.graph.model import ModelNode, Node, NodeId, SeedNode, TestNode
from mvbuild.parse.model import ParsedTest, Read
from mvbuild.project.loaded import LoadedProject
from mvbuild.source import Span


def group_of(node: Node) -> str | None:
    """The group of a model or seed."""
    if isinstance(node, ModelNode):
        return node.model.config.group
    return node.seed.config.group if isinstance(node, SeedNode) else None


def group_of_test(test: TestNode, nodes: Mapping[NodeId, Node]) -> str | None:
    """A SQL test names its group; any other test is in the group of what it tests."""
    if isinstance(test.test, ParsedTest):
        return test.test.group
    return group_of(nodes[test.reads[0]]) if test.reads and test.reads[0] in nodes else None


def forbidden(project: LoadedProject, nodes: Mapping[NodeId, Node]) -> Iterator[tuple[NodeId, Diagnostic]]:
    """Unknown groups, and reads of private models from outside of their group, each with the node that is wrong. A query of the command
    line, which has no file, may read everything."""
    for node in nodes.values():
        if not _is_unknown(node):
            yield from ((node.id, found) for found in _of_node(project, node, nodes))


def _of_node(project: LoadedProject, node: Node, nodes: Mapping[NodeId, Node]) -> Iterator[Diagnostic]:
    yield from _unknown(project, node)
    if isinstance(node, ModelNode):
        yield from _public_ephemeral(node)
        if node.model.file.path.lower().endswith(".sql"):
            yield from _private(f"'{node.model.name}'", group_of(node), node.query.reads, node.reads, nodes)


def forbidden_tests(project: LoadedProject, nodes: Mapping[NodeId, Node], tests: Iterable[TestNode]) -> Iterator[Diagnostic]:
    """The same for data tests."""
    for test in tests:
        if test.reads and _is_unknown(nodes.get(test.reads[0])):
            continue
        mine = group_of_test(test, nodes)
        if isinstance(test.test, ParsedTest) and mine is not None and mine not in project.groups:
            yield _no_group(project, mine, test.test.file.line_span(1))
        if test.query is not None:
            yield from _private(f"The test '{test.name}'", mine, test.query.reads, test.query_reads, nodes)
        else:
            for id_ in test.reads[1:]:
                yield from _refused(f"The test '{test.name}'", mine, nodes.get(id_), test.span)


def refusal(reader: str, read: Node | None, span: Span) -> Iterator[Diagnostic]:
    """For something that is in no group, as an exposure."""
    yield from _refused(reader, None, read, span)


def _is_unknown(node: Node | None) -> bool:
    """Whether its group and access may be others than they seem to be."""
    return isinstance(node, ModelNode) and not node.model.knows_settings


def _unknown(project: LoadedProject, node: Node) -> Iterator[Diagnostic]:
    group = group_of(node)
    if group is not None and group not in project.groups:
        config = node.model.config if isinstance(node, ModelNode) else node.seed.config if isinstance(node, SeedNode) else None
        yield _no_group(project, group, config.spans.get("group") if config else None)


def _no_group(project: LoadedProject, group: str, span: Span | None) -> Diagnostic:
    help = did_you_mean(group, project.groups) or f"Declare it in a YAML file: `groups: [{{name: {group}, owner: {{name: ...}}}}]`."
    return error("unknown-group", f"The group '{group}' is not declared", span, help=help)


def _public_ephemeral(node: ModelNode) -> Iterator[Diagnostic]:
    config = node.model.config
    if config.access == "public" and config.materialized == "ephemeral":
        message = f"'{node.model.name}' is ephemeral, so it is not in the catalog, and cannot be public"
        yield error("bad-config", message, config.spans.get("access"), help="Make it a view, or remove `access: public`.")


def _private(
    reader: str, group: str | None, reads: Sequence[Read], ids: Sequence[NodeId], nodes: Mapping[NodeId, Node]
) -> Iterator[Diagnostic]:
    if len(reads) == len(ids):
        for read, id_ in zip(reads, ids, strict=True):
            yield from _refused(reader, group, nodes.get(id_), read.span)


def _refused(reader: str, group: str | None, read: Node | None, span: Span) -> Iterator[Diagnostic]:
    if not isinstance(read, ModelNode) or _is_unknown(read) or read.model.config.access != "private":
        return
    owner = read.model.config.group
    if owner is None or group != owner:
        name = read.model.name
        notes = (Note(message="its access", span=read.model.config.spans.get("access")),)
        if owner is None:
            message = f"{reader} reads '{name}', which is private and in no group, so nothing may read it"
            help = f"Put both into one group, or make the access of '{name}' protected."
        else:
            message = f"{reader} reads '{name}', which is private to the group '{owner}'"
            help = (
                f"Read a model of '{owner}' that is not private, put the reader into that group, or make the access of '{name}' protected."
            )
        yield error("private-model", message, span, help=help, notes=notes)
