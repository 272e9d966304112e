"""a model's typed query -> its SQL for another engine, made of nothing but expressions whose equality with Spark was shown by trials.

In: a definition with the types of all its expressions. Out: its SQL for Trino, or what was not proven to be equal there, at its place.

Read first: `translation.py` (one definition), `expressions.py` (judges one expression), `proven.py` (reads `trino.json`, the table of
trials). tests/benchmarks/trino_proof.py writes the table.
"""
