"""a name or a query -> its rows, with each MV read by its policy: from storage where the policy allows it, otherwise from the query.

In: a name or a query of a reader. Out: rows (`show`) or a DataFrame (`read`, `sql`), and what each MV was served from.

Read first: `policy.py` (the decision for each MV below a query; pure), `answers.py` (the decision as one SQL text, pinned to one
observation), `frames.py` (a lazy DataFrame).

Only `policy.py` looks at the mark of failed data tests; if it is set, the last good refresh is served. A DataFrame is lazy, so `read` and
`sql` leave the scratch tables that it needs to the process, which drops them when it ends.
"""
