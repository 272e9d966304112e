"""ModelConfig + result schema -> TableLayout and properties of the storage table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, ProjectError
from mvbuild.formats.properties import OWNER
from mvbuild.graph.model import ModelNode
from mvbuild.lineage.named import misnamed_in_layout
from mvbuild.ports.commits import TableLayout
from mvbuild.ports.states import Partition, Schema, Sort, TableState
from mvbuild.project.settings import PartitionField
from mvbuild.project.table_properties import RESERVED

_MERGED_ON_READ = {f"write.{what}.mode": "merge-on-read" for what in ("delete", "update", "merge")}
STORAGE_DEFAULTS: Mapping[str, str] = {
    # PyIceberg, which publishes, cannot write v3. Merge-on-read makes later incremental refreshes cheap.
    "format-version": "2",
    **_MERGED_ON_READ,
    # Every refresh makes several metadata files; without a limit they would accumulate forever.
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
}

CONFIGURED = "mvbuild.table-properties"
"""Property of a storage table: a JSON list of the properties that come from the configuration, so that they are removed when the
configuration no longer has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertyChanges:
    """The changes that make the properties of a storage table those of the configuration."""

    set: Mapping[str, str]
    remove: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.set or self.remove)


def storage_layout(node: ModelNode, schema: Schema) -> TableLayout:
    """The layout that the storage table needs for the query's result. Raises ProjectError for a column that the result does not have, or
    whose type does not fit."""
    config = node.model.config
    names: dict[str, str] = {f["name"].lower(): f["name"] for f in schema["fields"]}
    wrong = (*misnamed_in_layout(node, names.values()), *_mistyped(node, schema))
    if wrong:
        raise ProjectError(wrong)
    partition_by = tuple(Partition(column=names[p.column.lower()], transform=_transform(p)) for p in config.partition_by)
    sort_by = tuple(Sort(column=names[s.column.lower()], descending=s.descending, nulls_first=s.nulls_first) for s in config.sort_by)
    return TableLayout(schema=documented(node, schema), partition_by=partition_by, sort_by=sort_by)


def _mistyped(node: ModelNode, schema: Schema) -> tuple[Diagnostic, ...]:
    if not (node.model.config.partition_by or node.model.config.sort_by):
        return ()
    # Imported here because most MVs have neither.
    from mvbuild.lineage.layout_types import mistyped_in_layout
    from mvbuild.lineage.schemas import of_schema

    return tuple(mistyped_in_layout(node, of_schema(schema)))


def storage_properties(node: ModelNode) -> dict[str, str]:
    """Properties of a new storage table; the user's take precedence."""
    own = node.model.config.table_properties
    # Version 1 cannot merge deletes on read: Spark refuses to delete rows.
    unfit = _MERGED_ON_READ if own.get("format-version") == "1" else {}
    defaults = {name: value for name, value in STORAGE_DEFAULTS.items() if name not in unfit}
    return {**defaults, **own, **_listed(node), OWNER: node.id}


def changed_properties(node: ModelNode, storage: TableState) -> PropertyChanges:
    """What the configuration sets and the table has differently, and what the configuration no longer sets. The format version is fixed
    when the table is created.

    A table from before that list existed, or of another writer, gets it with the next change that it needs anyway.
    """
    has, listed = storage.properties, _listed(node)
    wanted = {**_configured(node), OWNER: node.id}
    gone = [name for name in _names(has.get(CONFIGURED)) if name not in wanted and name in has]
    wanted |= {name: STORAGE_DEFAULTS[name] for name in gone if name in STORAGE_DEFAULTS}
    if CONFIGURED in has or any(has.get(name) != value for name, value in wanted.items()):
        wanted |= listed
    remove = [name for name in gone if name not in wanted] + [name for name in (CONFIGURED,) if name in has and not listed]
    return PropertyChanges(set={k: v for k, v in wanted.items() if has.get(k) != v}, remove=tuple(remove))


def _configured(node: ModelNode) -> dict[str, str]:
    return {name: value for name, value in node.model.config.table_properties.items() if name != "format-version"}


def _listed(node: ModelNode) -> dict[str, str]:
    names = sorted(_configured(node))
    return {CONFIGURED: json.dumps(names)} if names else {}


def _names(listed: str | None) -> list[str]:
    """Empty for a list that another writer broke; never includes a name that mvbuild needs."""
    try:
        names = json.loads(listed or "[]")
    except ValueError:
        return []
    return [n for n in names if isinstance(n, str) and not n.startswith(RESERVED)] if isinstance(names, list) else []


def documented(node: ModelNode, schema: Schema) -> Schema:
    """The schema with the columns' descriptions as their docs."""
    docs = {c.name.lower(): c.description for c in node.model.properties.columns if c.description}
    fields = [{k: v for k, v in f.items() if k != "doc"} | _doc(docs.get(f["name"].lower())) for f in schema["fields"]]
    return {**schema, "fields": fields}


def docs(schema: Schema) -> list[str | None]:
    """The docs of its columns, in order."""
    return [field.get("doc") for field in schema["fields"]]


def _doc(text: str | None) -> dict[str, str]:
    return {"doc": text} if text else {}


def same_columns(one: Schema, other: Schema) -> bool:
    """Whether two schemas have the same names and types in the same order, ignoring field ids, docs and nullability."""
    return bool(_shape(one) == _shape(other))


def same_layout(table: TableState, layout: TableLayout) -> bool:
    """Whether rows with this layout can go into the table as it is."""
    return same_columns(table.schema, layout.schema) and table.partition_by == layout.partition_by and table.sort_by == layout.sort_by


def _transform(field: PartitionField) -> str:
    return field.transform if field.width is None else f"{field.transform}[{field.width}]"


def _shape(type_: Any) -> Any:
    if not isinstance(type_, Mapping):
        return str(type_).replace(" ", "")
    if type_["type"] == "struct":
        return tuple((f["name"], _shape(f["type"])) for f in type_["fields"])
    if type_["type"] == "list":
        return ("list", _shape(type_["element"]))
    return ("map", _shape(type_["key"]), _shape(type_["value"]))
