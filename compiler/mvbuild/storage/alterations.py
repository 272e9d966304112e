"""MV + its catalog entries -> Alteration: the differences from the configuration that need no change of rows."""

from __future__ import annotations

from mvbuild.dataclass import dataclass
from mvbuild.graph.model import ModelNode
from mvbuild.graph.view_text import DIALECTS, further_dialects
from mvbuild.ports.commits import TableLayout
from mvbuild.ports.states import TableState, ViewState
from mvbuild.storage.layout import PropertyChanges, changed_properties, docs, documented, storage_layout
from mvbuild.storage.marks import wanted_marks
from mvbuild.storage.policy import POLICY, policy_properties


@dataclass(frozen=True, slots=True, kw_only=True)
class Alteration:
    """None of these changes makes data stale."""

    layout: TableLayout | None
    """Partition spec, sort order and column comments for the storage table, if they differ."""
    properties: PropertyChanges
    view_version: bool
    """The view needs a new version: its text or its columns' comments differ."""
    view_properties: PropertyChanges
    """The view's comment, serving policy and marks as an MV, if they differ."""
    what: tuple[str, ...]
    """The changes in words, for messages."""


def alteration_of(node: ModelNode, storage: TableState, view: ViewState, *, text_differs: bool) -> Alteration | None:
    """None if there is nothing to alter. Raises ProjectError for a column that the storage does not have. `text_differs`: whether the
    text of the view differs from what it should be."""
    wanted = storage_layout(node, storage.schema)
    properties, of_view, marks = changed_properties(node, storage), changed_view_properties(node, view), changed_marks(node, view, storage)
    words = {
        "partitioning": wanted.partition_by != storage.partition_by,
        "sort order": wanted.sort_by != storage.sort_by,
        "column comments": docs(wanted.schema) != docs(storage.schema) or docs(documented(node, view.schema)) != docs(view.schema),
        "table properties": bool(properties),
        "description": _COMMENT in {*of_view.set, *of_view.remove},
        "serving policy": not {*of_view.set, *of_view.remove}.isdisjoint(POLICY),
        "marks of the view": bool(marks),
        "text of the view": DIALECTS in {*of_view.set, *of_view.remove} or text_differs,
    }
    what = tuple(word for word, differs in words.items() if differs)
    if not what:
        return None
    return Alteration(
        layout=wanted if _differs(wanted, storage) else None,
        properties=properties,
        view_version=text_differs or docs(documented(node, view.schema)) != docs(view.schema),
        view_properties=PropertyChanges(set={**of_view.set, **marks.set}, remove=(*of_view.remove, *marks.remove)),
        what=what,
    )


def _differs(wanted: TableLayout, storage: TableState) -> bool:
    return (wanted.partition_by, wanted.sort_by, docs(wanted.schema)) != (storage.partition_by, storage.sort_by, docs(storage.schema))


def wanted_view_properties(node: ModelNode) -> dict[str, str]:
    """The view's properties besides its definition and its marks as an MV: a comment, which SQL is mvbuild's, and the serving policy."""
    description, dialects = node.model.properties.description, sorted(further_dialects(node))
    found = ({_COMMENT: description} if description else {}) | ({DIALECTS: ",".join(dialects)} if dialects else {})
    return found if node.storage is None else found | policy_properties(node.model.config)


def changed_view_properties(node: ModelNode, view: ViewState) -> PropertyChanges:
    """The changes that set these properties; they need no new version."""
    wanted, has = wanted_view_properties(node), view.properties
    return PropertyChanges(
        set={name: value for name, value in wanted.items() if has.get(name) != value},
        remove=tuple(name for name in (_COMMENT, DIALECTS, *POLICY) if name in has and name not in wanted),
    )


def changed_marks(node: ModelNode, view: ViewState, storage: TableState) -> PropertyChanges:
    """The changes that make the view the one of this storage again, for mvbuild and for other engines."""
    wanted, gone = wanted_marks(view, storage, node.id)
    return PropertyChanges(set=wanted, remove=gone)


_COMMENT = "comment"
