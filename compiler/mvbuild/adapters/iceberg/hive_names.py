"""name of a table or namespace -> why a Hive metastore or Glue cannot have it: one level of namespaces, lower case."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mvbuild.dataclass import dataclass
from mvbuild.ports.catalog import CatalogError

if TYPE_CHECKING:
    from mvbuild.adapters.iceberg.pointers import Key

_GLUE = re.compile(r"[a-z0-9_]{1,255}")


@dataclass(frozen=True, slots=True)
class Names:
    """The rules of one kind of metastore."""

    metastore: str
    """The name of the metastore with an article, for messages."""
    pattern: re.Pattern[str] | None = None
    """The pattern for each part of a name, if Spark requires one."""

    def can_be(self, key: Key) -> bool:
        """Whether a table of that name may exist. An empty name means the namespace alone."""
        return not self._refusal(key)

    def require(self, key: Key) -> None:
        """Raise CatalogError, which says what to do, for an impossible name."""
        refusal = self._refusal(key)
        if refusal:
            raise CatalogError(refusal)

    def _refusal(self, key: Key) -> str:
        namespace, name = key
        full = f"{namespace}.{name}" if name else namespace
        if "." in namespace:
            return (
                f"'{full}' cannot be in {self.metastore}, which has one level of namespaces and '{namespace}' has more:"
                " give `namespace` a name without a dot."
            )
        if full != full.lower():
            return (
                f"'{full}' cannot be in {self.metastore}, which stores names in lower case: name it '{full.lower()}',"
                " with the file's name, `alias` or `namespace`."
            )
        if self.pattern and not all(self.pattern.fullmatch(part) for part in (namespace, name) if part):
            return (
                f"'{full}' cannot be in {self.metastore}, where names have only lower-case letters, digits and underscores: choose another,"
                " with the file's name, `alias` or `namespace`."
            )
        return ""


HIVE = Names("a Hive metastore")
GLUE = Names("Glue", _GLUE)
GLUE_UNCHECKED = Names("Glue")
"""The rules with `glue.skip-name-validation`, as in Spark."""
