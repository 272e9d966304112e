"""an entry of a Hive metastore or Glue that is a view of Trino -> a description: Trino stores views there in its own format.

Source: trinodb/trino, `io.trino.plugin.hive.ViewReaderUtil` and `io.trino.plugin.iceberg.IcebergMaterializedViewDefinition`: the parameter
`presto_view`, and as the text of the view a comment with the base64 of a JSON object. The rows of a materialized view are in an Iceberg
table without an entry.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping

_TEXT = re.compile(r"/\* (?:Presto|Trino) (Materialized )?View: ([A-Za-z0-9+/=\s]+) \*/")
_LONGEST = 300


def view_of_trino(parameters: Mapping[str, str], text: str | None) -> str | None:
    """What the entry is, which tables it reads, and its query; None if Trino did not write the entry."""
    found = _TEXT.fullmatch((text or "").strip())
    if found is None and parameters.get("presto_view", "").lower() != "true":
        return None
    is_mv = bool(found and found[1]) or "Materialized" in parameters.get("comment", "")
    what = (
        "a Trino materialized view, which stores its rows in a table without a name"
        if is_mv
        else "a Trino view, which other engines cannot read"
    )
    definition = _definition(found[2]) if found else {}
    sql = definition.get("originalSql")
    if not isinstance(sql, str):
        return what
    tables = _tables(sql, definition)
    reads = f"; it reads {', '.join(tables)}" if tables else ""
    return f"{what}{reads}; its query is: {_shortened(sql)}"


def _definition(encoded: str) -> Mapping[str, object]:
    try:
        definition = json.loads(base64.b64decode(encoded))
    except ValueError:
        return {}
    return definition if isinstance(definition, dict) else {}


def _tables(sql: str, definition: Mapping[str, object]) -> tuple[str, ...]:
    """The tables of the query, with the schema in which Trino resolves an unqualified name. Trino's own name of the view's catalog has no
    meaning here, so it is omitted. Empty if the query cannot be parsed."""
    import sqlglot  # only for an entry that blocks a model
    from sqlglot import exp
    from sqlglot.optimizer.scope import traverse_scope

    try:
        scopes = traverse_scope(sqlglot.parse_one(sql, dialect="trino"))
    except sqlglot.errors.SqlglotError:
        return ()
    tables = [source for scope in scopes for source in scope.sources.values() if isinstance(source, exp.Table) and source.name]
    schema, catalog = definition.get("schema"), definition.get("catalog")
    parts = ((t.catalog if t.catalog != catalog else "", t.db or str(schema or ""), t.name) for t in tables)
    return tuple(dict.fromkeys(".".join(filter(None, part)) for part in parts))


def _shortened(sql: str) -> str:
    words = " ".join(sql.split())
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]} ..."
