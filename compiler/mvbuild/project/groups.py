"""One item of `groups:` in a YAML file -> Group."""

from __future__ import annotations

from mvbuild.diagnostics import Diagnostic, error
from mvbuild.project.loaded import Group
from mvbuild.project.yaml_spans import MapNode, plain


def read_group(node: MapNode, report: list[Diagnostic]) -> Group | None:
    """As in dbt, an owner has a name or an email address. None for a group without a name, which was reported."""
    declared, place, of_owner = plain(node), node.get("name"), node.get("owner")
    name, owner, config = (declared.get(key) for key in ("name", "owner", "config"))
    meta = config.get("meta") if isinstance(config, dict) else None
    if not isinstance(name, str) or place is None:
        return None
    if of_owner is not None and isinstance(owner, dict) and not {"name", "email"} & {key for key, value in owner.items() if value}:
        message = f"The owner of the group '{name}' has neither a name nor an email address"
        report.append(error("missing-key", message, of_owner.span, help="Write `owner: {name: ...}` or `owner: {email: ...}`."))
    return Group(
        name=name,
        owner=owner if isinstance(owner, dict) else {},
        description=str(declared.get("description") or ""),
        meta=meta if isinstance(meta, dict) else {},
        span=place.node.span,
    )
