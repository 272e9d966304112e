"""what the properties of a view tell of its text, and the text of a view that selects from its storage."""

from __future__ import annotations

from collections.abc import Sequence

from mvbuild.graph.model import ModelNode
from mvbuild.names import TableIdentifier, quote

DEFINITION = "mvbuild.definition"
"""Property of a view that selects from the storage: the definition, which its text does not tell any more."""

DIALECTS = "mvbuild.dialects"
"""Property of a view: the dialects besides Spark's in which mvbuild wrote its SQL. Others are other engines'."""


def storage_select(storage: TableIdentifier, columns: Sequence[str]) -> str:
    """What a view selects for engines that know no MVs."""
    return f"SELECT {', '.join(quote(c) for c in columns)} FROM {storage.sql}"


def further_dialects(node: ModelNode) -> list[str]:
    """The dialects besides Spark's that the model's settings ask for."""
    return [d for d in dict.fromkeys(name.lower() for name in node.model.config.dialects) if d != "spark"]
