"""a run as it goes on -> OpenLineage events, which another process sends with openlineage-python; needs `mvbuild[openlineage]`.

In: the events and the `World` of a run. Out: a START and a COMPLETE or FAIL event of the run, of each node that it wrote, and of the tests
of each table. Where they are sent to is openlineage-python's own configuration (docs/openlineage.md).

Nothing here can fail or delay a run. `emitter.py` runs in a thread of its own, `outbox.py` only appends to a file, and `send.py`, in
another process, talks to the receiver.

Read first: `emitter.py`, `events.py` and `datasets.py` (what the events say).
"""
