"""`targets:` of the project file -> Target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any

from mvbuild.diagnostics import Diagnostic, ProjectError, did_you_mean, error
from mvbuild.project.catalog_properties import misspelt
from mvbuild.project.key_types import count_of
from mvbuild.project.loaded import SparkSettings, Target
from mvbuild.project.setting_values import as_text, duration
from mvbuild.project.yaml_spans import Entry, MapNode, Node, ScalarNode, is_empty, plain
from mvbuild.source import SourceFile, Span

DEFAULT_NAME = "dev"


def choose_target(file: SourceFile, project: MapNode, asked: str | None, default: Entry | None) -> Entry | None:
    """The entry of the chosen target; None if the project declares no targets. Raises ProjectError for a target that does not exist."""
    declared = names(project)
    name, span = asked, None
    is_secret = False
    if name is None and default is not None and isinstance(default.node, ScalarNode) and isinstance(default.node.value, str):
        name, span, is_secret = default.node.value, default.node.span, default.node.rendered
    if name is None:
        name = DEFAULT_NAME if DEFAULT_NAME in declared or len(declared) != 1 else declared[0]
    targets = project.get("targets")
    if targets is None or not isinstance(targets.node, MapNode) or not targets.node.entries:
        declared = (DEFAULT_NAME,)
    if name not in declared:
        what = "The target in `target:`" if is_secret else f"The target '{name}'"
        # The first line may be a comment.
        first = next((entry.span for entry in project.entries), file.line_span(1))
        place = span or (targets.span if targets else first)
        raise ProjectError([error("unknown-target", f"{what} is not declared", place, help=did_you_mean(name, declared))])
    return targets.node.get(name) if targets and isinstance(targets.node, MapNode) else None


def names(project: MapNode) -> tuple[str, ...]:
    """The declared targets."""
    targets = project.get("targets")
    return tuple(e.key for e in targets.node.entries) if targets and isinstance(targets.node, MapNode) else ()


def target_of(root: Path, entry: Entry | None, threads: int | None, report: list[Diagnostic]) -> Target:
    """A target from its rendered, checked block; without one, or without a catalog in it, the catalog in the project directory."""
    block = entry.node if entry and isinstance(entry.node, MapNode) else None
    catalog = strings(_value(block, "catalog"), "A property of a catalog", report)
    report.extend(misspelt(_value(block, "catalog")))
    name = catalog.pop("name", "lake")
    embedded = not catalog
    if embedded and (odd := next((c for c in "#?" if c in str(root)), None)):
        message = f"The embedded catalog cannot be in {root}: '{odd}' ends the path in a file URL"
        report.append(error("bad-config", message, entry.span if entry else None, help="Rename the folder, or configure a catalog."))
    return Target(
        name=entry.key if entry else DEFAULT_NAME,
        catalog_name=name,
        catalog=MappingProxyType(embedded_catalog(root) if embedded else catalog),
        namespace=_namespace(_value(block, "namespace") or _value(block, "schema")),
        spark=_spark(_value(block, "spark"), report),
        threads=threads or count_of(_value(block, "threads")) or 4,
        embedded=embedded,
        span=_catalog_span(block, entry),
    )


def vars_of(entry: Entry | None) -> Mapping[str, Any]:
    """Values for var() that only this target has."""
    node = _value(entry.node, "vars") if entry else None
    return plain(node) if isinstance(node, MapNode) else {}


def _catalog_span(block: MapNode | None, entry: Entry | None) -> Span | None:
    """The key `catalog:`, or otherwise the target's name: where errors of the catalog are reported."""
    catalog = block.get("catalog") if block else None
    found = catalog or entry
    return found.span if found else None


def embedded_catalog(root: Path) -> dict[str, str]:
    """A SQLite catalog and its warehouse inside the project directory."""
    home = (root / ".mvbuild").as_posix()
    return {"type": "sql", "uri": f"sqlite:///{home}/catalog.db", "warehouse": f"file://{home}/warehouse"}


def _spark(node: Node | None, report: list[Diagnostic]) -> SparkSettings:
    config = MappingProxyType(strings(_value(node, "config"), "A property of Spark", report))
    settings = SparkSettings(master=_text(node, "master") or "local[*]", remote=_text(node, "remote"), config=config)
    return replace(settings, keep_warm=_keep_warm(node, settings, report))


def _keep_warm(node: Node | None, settings: SparkSettings, report: list[Diagnostic]) -> timedelta | None:
    entry = node.get("keep_warm") if isinstance(node, MapNode) else None
    text = _text(node, "keep_warm")
    if entry is None or text is None:
        return None
    found = duration(text)
    if not found:
        report.append(error("wrong-type", "'keep_warm' must be a duration like 15m or 1h", entry.node.span))
    elif settings.remote is not None or not settings.master.startswith("local"):
        report.append(error("bad-config", "'keep_warm' is for a local Spark that mvbuild starts", entry.span, help="Remove it."))
    return found


def strings(node: Node | None, what: str, report: list[Diagnostic]) -> dict[str, str]:
    """The entries of a mapping as texts, without empty ones; `what` names one of them in messages."""
    out: dict[str, str] = {}
    for entry in node.entries if isinstance(node, MapNode) else ():
        if is_empty(entry.node):
            continue
        text = as_text(plain(entry.node))
        if text is None:
            report.append(error("wrong-type", f"{what} must be a string, a number, true or false: '{entry.key}'", entry.node.span))
        else:
            out[entry.key] = text
    return out


def _namespace(node: Node | None) -> tuple[str, ...]:
    if node is None or is_empty(node):
        return ("main",)
    value = plain(node)
    parts = value.split(".") if isinstance(value, str) else value
    return tuple(str(p).strip() for p in parts) if isinstance(parts, list) and parts else ("main",)


def _value(node: Node | None, key: str) -> Node | None:
    entry = node.get(key) if isinstance(node, MapNode) else None
    return entry.node if entry else None


def _text(node: Node | None, key: str) -> str | None:
    value = _value(node, key)
    return value.value if isinstance(value, ScalarNode) and isinstance(value.value, str) else None
