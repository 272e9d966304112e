"""Two texts of one query -> whether they are the same query, and what differs.

In: two texts of SQL; optionally the columns of the tables that they read, and an engine. Out: an `Edit`, which plans, refreshes and
reviews all use, so that they say the same of the same edit.

Read first: `edit.py` (the types), `ladder.py` (the rungs, from equal tokens to a proof by Spark), `canonical_tree.py` (the form that is
equal for queries with the same meaning).

**Rungs.** `canonical_text.py` shows that only names differ, on the text that `inlined.py` makes. A canonical tree is made from the same
text: `resolve.py` replaces names, `tidy.py` brings each clause into one form, `merge.py` removes subqueries. `spark_proof.py` compares
Spark's plans, whose text `plan_text.py` simplifies by the laws of `plan_rules.py` and `plan_joins.py`. Which rung keeps stored rows is
decided in docs/decisions/017.

**What differs.** `differences.py` has what is certain, `column_changes.py` and `filters.py` are parts of it. If nothing is certain,
`clauses.py` names the clauses that differ.
"""

from __future__ import annotations
