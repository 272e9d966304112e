"""What mvbuild needs of the world, as Protocols.

In and out: values without types of PyIceberg or PySpark. `states.py` has what is read of tables and views, `changes.py` what differs
between two snapshots, `commits.py` what is to be changed and what must still be true then (`TableCommit`, `ViewCommit`).

Read first: `catalog.py`, `commits.py` and `engine.py`.
"""
