"""A model, the rows that it reads and those that it must return -> whether it returns them, from one query each.

In: UnitTests (`project.unit_tests`), a graph and the types of its columns, an engine
Out: a TestResult of each test, with the rows that differ

Read first: `query.py` (the model with given rows in place of its tables), `values.py` (values of YAML as SQL) and `run.py`.
"""
