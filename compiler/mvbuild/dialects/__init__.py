"""a model's typed query -> its SQL for another engine, using only expressions for which trials showed that they equal Spark's.

In: a definition with the types of all its expressions. Out: its SQL for Trino, or the expressions that are not proven equal there, with
their places.

Read first: `translation.py` (one definition), `expressions.py` (judges one expression), `proven.py` (reads `trino.json`, the table of
trials). tests/benchmarks/trino_proof.py writes the table.
"""
