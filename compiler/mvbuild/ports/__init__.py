"""What mvbuild needs from the world, as Protocols.

In and out: values without types of PyIceberg or PySpark. `states.py` has what is read of tables and views, `changes.py` the differences
between two snapshots, `commits.py` the changes to make and what must still be true for them (`TableCommit`, `ViewCommit`).

Read first: `catalog.py`, `commits.py` and `engine.py`.
"""
