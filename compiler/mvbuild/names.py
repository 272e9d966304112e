"""dotted text -> TableIdentifier: the name of a table or view in a catalog, and how Spark SQL spells it."""

from __future__ import annotations

import re
from typing import NamedTuple

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

# Names that Spark misreads unless they are quoted: reserved words of its ANSI mode that are allowed where a name is.
_QUOTED_WORDS = frozenset(
    "all and anti any as asc between both by case cast check collate column constraint create cross cube current current_date "
    "current_time current_timestamp current_user delete desc describe distinct div drop else end escape except exists false fetch "
    "filter for foreign from full function grant group grouping having in inner insert intersect interval into is join lateral leading "
    "left like limit merge minus natural not null offset on only or order outer overlaps partition percent pivot primary references "
    "right rollup rows select semi session_user set some sort table tablesample then time to trailing true truncate union unique "
    "unknown unpivot update user using values version view when where window with within".split()
)


def quote(part: str) -> str:
    """One part of a name for Spark SQL, in backticks only if it needs them.

    >>> quote("daily"), quote("order")
    ('daily', '`order`')
    """
    if _PLAIN.match(part) and part.lower() not in _QUOTED_WORDS:
        return part
    return "`" + part.replace("`", "``") + "`"


STORAGE_SUFFIX = "__storage"
"""The name of a storage table is that of its MV with this, if the project does not name it."""
AUXILIARY_SUFFIX = "__auxiliary_"
"""The name of an auxiliary view is that of its MV with this and a number, which counts from 1."""


class TableIdentifier(NamedTuple):
    """Catalog, namespace (one level or more) and name: a *table identifier* of the Iceberg specification.

    A table that is only a path, in no catalog, has the path as its name, and neither catalog nor namespace. It is a tuple because a
    run with nothing to do looks up each name thirty times, and tuples are hashed and compared without Python code.
    """

    catalog: str
    namespace: tuple[str, ...]
    name: str

    @property
    def is_path(self) -> bool:
        return not self.catalog and not self.namespace

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.name,) if self.is_path else (self.catalog, *self.namespace, self.name)

    @property
    def sql(self) -> str:
        """`catalog.namespace.name` for Spark SQL. A path is written after the name of its format."""
        return ".".join([quote(part) for part in self.parts])

    @property
    def dotted(self) -> str:
        """`namespace.name`, the form of the property-based specification; see `parse`."""
        return ".".join((*self.namespace, self.name))

    @property
    def key(self) -> tuple[str, ...]:
        """Equal for names that Spark, which ignores case, treats as equal. Paths are case-sensitive."""
        return self.parts if self.is_path else tuple([part.lower() for part in self.parts])

    def __str__(self) -> str:
        return ".".join(self.parts)

    @staticmethod
    def parse(text: str, catalog: str) -> TableIdentifier:
        """`a.b` or `catalog.a.b` -> identifier. A leading part equal to `catalog` is the catalog.

        >>> str(TableIdentifier.parse("mart.daily", "lake"))
        'lake.mart.daily'
        """
        parts = tuple(part.strip("`") for part in text.split("."))
        if len(parts) > 2 and parts[0] == catalog:
            parts = parts[1:]
        return TableIdentifier(catalog, parts[:-1], parts[-1])
