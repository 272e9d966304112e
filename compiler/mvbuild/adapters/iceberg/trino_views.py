"""an entry of a Hive metastore or Glue that is a view of Trino -> what it is, in words: Trino keeps views there in a form of its own.

Source: trinodb/trino, `io.trino.plugin.hive.ViewReaderUtil` and `io.trino.plugin.iceberg.IcebergMaterializedViewDefinition`: the parameter
`presto_view`, and as the text of the view a comment with the base64 of a JSON object. The rows of a materialized view are in an Iceberg
table that has no entry.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping

_TEXT = re.compile(r"/\* (?:Presto|Trino) (Materialized )?View: ([A-Za-z0-9+/=\s]+) \*/")
_LONGEST = 300


def view_of_trino(parameters: Mapping[str, str], text: str | None) -> str | None:
    """None for an entry that is none."""
    found = _TEXT.fullmatch((text or "").strip())
    if found is None and parameters.get("presto_view", "").lower() != "true":
        return None
    is_mv = bool(found and found[1]) or "Materialized" in parameters.get("comment", "")
    what = (
        "a materialized view of Trino, whose rows are in a table without a name"
        if is_mv
        else "a view of Trino, which no other engine reads"
    )
    sql = _sql(found[2]) if found else None
    return f"{what}; its query is: {sql}" if sql else what


def _sql(encoded: str) -> str | None:
    try:
        sql = json.loads(base64.b64decode(encoded))["originalSql"]
    except (ValueError, LookupError, TypeError):
        return None
    words = " ".join(str(sql).split())
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]} ..."
