"""profiles.yml -> DbtTarget: the adapter, and the schema for tables. Nothing else of a profile is kept."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, ProjectError, did_you_mean, error
from mvbuild.project.files import read_text
from mvbuild.project.interpolate import Interpolation
from mvbuild.project.yaml_spans import MapNode, Node, ScalarNode, read_yaml

SPARK = ("spark", "databricks")
DEFAULT_SCHEMA = "main"


@dataclass(frozen=True, slots=True, kw_only=True)
class DbtTarget:
    name: str = "dev"
    schema: str = DEFAULT_SCHEMA
    adapter: str = "spark"
    known: bool = False
    """False if there is no profile: then the names are mvbuild's defaults."""


def read_target(directories: tuple[Path, ...], profile: str | None, asked: str | None, env: Mapping[str, str]) -> DbtTarget:
    """The target of the project's profile, from the first directory that has a profiles.yml. Raises ProjectError."""
    home = next((d for d in directories if (d / "profiles.yml").is_file()), None)
    if home is None or profile is None:
        return DbtTarget(name=asked or "dev")
    file = read_text(home, "profiles.yml")
    tree, wrong = read_yaml(file, last_wins=True)
    if any(d.code != "duplicate-key" for d in wrong):
        raise ProjectError(wrong)
    block = _get(tree, profile)
    outputs = _get(block, "outputs")
    if not isinstance(outputs, MapNode):
        return DbtTarget(name=asked or "dev")
    report: list[Diagnostic] = []
    name = asked or _text(_get(block, "target"), env, report) or "default"
    output = _get(outputs, name)
    if not isinstance(output, MapNode):
        known = [entry.key for entry in outputs.entries]
        raise ProjectError([error("unknown-target", f"The profile '{profile}' has no target '{name}'", help=did_you_mean(name, known))])
    schema = _text(_get(output, "schema"), env, report)
    adapter = _text(_get(output, "type"), env, report)
    if report:
        raise ProjectError(report)
    return DbtTarget(name=name, schema=schema or DEFAULT_SCHEMA, adapter=adapter or "spark", known=True)


def _get(node: Node | None, key: str) -> Node | None:
    entry = node.get(key) if isinstance(node, MapNode) else None
    return entry.node if entry else None


def _text(node: Node | None, env: Mapping[str, str], report: list[Diagnostic]) -> str | None:
    if not isinstance(node, ScalarNode):
        return None
    interpolation = Interpolation(env, {})
    rendered = interpolation.render(node)
    report.extend(interpolation.diagnostics)
    return str(rendered.value) if isinstance(rendered, ScalarNode) and rendered.value is not None else None
