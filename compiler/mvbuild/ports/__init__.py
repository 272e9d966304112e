"""What mvbuild needs from the world, as Protocols.

In and out: values without types of PyIceberg or PySpark. A catalog is three ports: names, states and commits (`catalog.py`), the
differences between snapshots (`table_changes.py`), and the rows and files of tables (`table_files.py`). `states.py` has what is read of
tables and views, `changes.py` what a difference is, `commits.py` the changes to make and what must still be true for them (`TableCommit`,
`ViewCommit`).

Read first: `catalog.py`, `commits.py` and `engine.py`.
"""
