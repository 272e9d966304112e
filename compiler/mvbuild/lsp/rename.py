"""a name at a place, and a new name -> the edits of all files, and of the name of a file, that rename it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from mvbuild.dataclass import dataclass
from mvbuild.graph.model import ModelNode, Node
from mvbuild.lsp.names import Names
from mvbuild.lsp.references import cte_references, reference_at, references
from mvbuild.lsp.sql_text import Named, cte_heads, is_cte, last_part
from mvbuild.source import SourceFile, Span

_NAME = re.compile(r"[A-Za-z_]\w*")


class NotRenamed(Exception):
    """Why a name cannot be changed, as a sentence for the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Renamed:
    """`spans` become the new name. `file`: the path of the model's file, and the new one; None for a CTE."""

    spans: tuple[Span, ...]
    file: tuple[str, str] | None = None
    note: str = ""
    """What else the user may want to do."""


def target_at(path: str, text: str, offset: int, names: Names) -> tuple[Named, Node | None]:
    """What is at a place: a CTE of the file (without a node) or a model. Raises NotRenamed for everything else."""
    named = reference_at(path, text, offset)
    if named is not None and is_cte(named, cte_heads(text)):
        return named, None
    node = names.node(named) if named is not None else None
    if named is None or not isinstance(node, ModelNode):
        raise NotRenamed("Only models and CTEs can be renamed.")
    if node.model.version is not None:
        name = node.model.ref_name
        raise NotRenamed(
            f"'{name}' has versions. Rename it by hand: in its YAML file, in the names of its files, and in each ref('{name}')."
        )
    return named, node


def place_of_name(text: str, named: Named) -> tuple[int, int]:
    """The part of the text at the cursor that is replaced."""
    return (named.start, named.end) if text[named.start : named.end] == named.parts[-1] else last_part(text, named)


def renamed(path: str, text: str, offset: int, new: str, names: Names, files: Iterable[SourceFile]) -> Renamed:
    """Raises NotRenamed. The new name must be free, since two models with one name are an error."""
    if not _NAME.fullmatch(new):
        raise NotRenamed(f"'{new}' is not a valid name: use letters, digits and underscores, and begin with a letter.")
    named, node = target_at(path, text, offset, names)
    if node is None:
        if new.lower() in cte_heads(text):
            raise NotRenamed(f"This file has a CTE '{new}' already.")
        return Renamed(spans=cte_references(SourceFile(path, text), named.parts[0]))
    assert isinstance(node, ModelNode)
    other = names.node(Named(kind="ref", parts=(new,), start=0, end=0))
    if other is not None and other is not node:
        raise NotRenamed(f"The project has a model or seed '{new}' already.")
    has_alias = node.identifier.name.lower() != node.model.name.lower()
    spans = tuple(one.span for one in references(names, node, files) if not (one.by_identifier and has_alias))
    old = node.model.file.path
    folder, _, name = old.rpartition("/")
    return Renamed(spans=spans, file=(old, f"{folder}/{new}{name[len(node.model.name) :]}" if folder else new), note=_note(node, has_alias))


def _note(node: ModelNode, has_alias: bool) -> str:
    if node.materialized == "ephemeral" or has_alias:
        return ""
    name = node.model.name
    return f"If '{name}' has been built, set `previous_name: {name}` for it. The next run then renames it instead of building it again."
