"""a name or a query -> its rows, every MV by its policy: from storage while that may stand for the query, else from the query.

In: a name or a query of a reader. Out: rows (`show`) or a DataFrame (`read`, `sql`), and what each MV was served from.

Read first: `policy.py` (the decision for each MV below a query; pure), `answers.py` (one SQL text of it, pinned to one observation, with
`refresh/sql.py`), `frames.py` (a lazy DataFrame).

`policy.py` alone looks at the mark of failed data tests; it then serves the last good refresh. `read` and `sql` leave the scratch tables
that a lazy DataFrame still needs to the process, which drops them when it ends.
"""
