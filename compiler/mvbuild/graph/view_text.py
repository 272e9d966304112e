"""what the properties of a view record about its text, and the text of a view that selects from its storage."""

from __future__ import annotations

from collections.abc import Sequence

from mvbuild.graph.model import ModelNode
from mvbuild.names import TableIdentifier, quote

DEFINITION = "mvbuild.definition"
"""Property of a view that selects from the storage: the definition, which its text does not contain."""

DIALECTS = "mvbuild.dialects"
"""Property of a view: the dialects besides Spark's in which mvbuild wrote its SQL. Other dialects belong to other engines."""


def storage_select(storage: TableIdentifier, columns: Sequence[str]) -> str:
    """The SQL of a view for engines that do not support MVs."""
    return f"SELECT {', '.join(quote(c) for c in columns)} FROM {storage.sql}"


def further_dialects(node: ModelNode) -> list[str]:
    """The dialects besides Spark's that the model's settings request."""
    return [d for d in dict.fromkeys(name.lower() for name in node.model.config.dialects) if d != "spark"]
