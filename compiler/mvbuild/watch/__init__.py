"""project -> its MVs, kept as fresh as their target lags ask for, until the process is stopped.

In: a graph, its catalog, a clock and options. Out: commits to the catalog; events, metrics and notifications about them.

Read first: `due.py` (which MVs to refresh now, and when to look again), `watcher.py` (the loop), `poll.py` (whether anything changed).

`refresh.py` refreshes a batch of MVs as `run` does. `warm.py` keeps one engine between batches. `retries.py` knows what must wait after a
failure. `project.py` loads a project again if `files.py` notices edits. `metrics.py`, `endpoints.py` and `notify.py` report to others what
`events.py` defines.
"""
