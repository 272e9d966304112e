"""Graph + schemas of base tables -> columns and types of every model, and from which base columns each comes.

In: `Graph`, and the columns that the catalog, `schemas.lock`, seeds or YAML give for base tables. Out: `Bound`: the columns, types and
origins of every node, and what is certainly wrong with them.

Read first: `model.py` (the types), `bind.py` (a whole graph), `statement.py` (one query: a pure function, so that its result can be
cached).

Without schemas, `check.py` binds only the queries that `unmatched.py` finds suspicious.
"""

from __future__ import annotations
