"""Rename, Removed -> the paragraphs and objects of `mvbuild plan` for renames, and for what removed models left in the catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from mvbuild.plan.removed import Removed
    from mvbuild.plan.renames import Rename


def rename_text(rename: Rename) -> str:
    """`rename  lake.mart.old -> lake.mart.new`, and the storage on the next line."""
    (old, new), *others = rename.names.items()
    return "\n".join([f"rename  {old} -> {click.style(str(new), bold=True)}", *(f"    {a} -> {b}" for a, b in others)])


def removed_text(item: Removed, *, prune: bool) -> str:
    """`removed  lake.mart.old`, or `drop` if the run would drop it; what it was, and what prevents dropping it."""
    verb = "drop" if prune and not item.kept_by else "removed"
    lines = [f"{verb}  {click.style(str(item.identifier), bold=True)}"]
    lines += [f"    {text}" for text in (item.note, item.help) if text]
    if item.kept_by:
        lines.append(f"    kept while these read it: {', '.join(str(d) for d in item.kept_by)}")
    elif not prune:
        lines.append("    `mvbuild run --prune` drops it")
    return "\n".join(lines)


def rename_object(rename: Rename) -> dict[str, Any]:
    """The JSON output: {unique_id, from, to}."""
    return {"unique_id": rename.node, "names": [{"from": str(old), "to": str(new)} for old, new in rename.names.items()]}


def removed_object(item: Removed) -> dict[str, Any]:
    """The JSON output: {unique_id, relations, note, dependents}."""
    return {
        "unique_id": item.model,
        "relation": str(item.identifier),
        "storage": str(item.storage.identifier) if item.storage else None,
        "note": item.note,
        "dependents": [str(d.identifier) for d in item.kept_by],
    }
