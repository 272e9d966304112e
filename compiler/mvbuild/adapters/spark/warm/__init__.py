"""Launch -> Lease: a local Spark Connect server that a command leaves behind, for the next command with the same settings.

In: the `Launch` that a command would start Spark with. Out: a session on a server that has been used before, and on which other commands
may have sessions at the same time; or None, and the command starts its own Spark.

Read first: `folder.py` (what is on disk: a record and two locks), `lease.py` (what a command does), `server.py` (the process that owns the
JVM and ends it).

Who lives is decided by locks of the operating system, which end with their process: a record without the lock of its server is that of a
dead server, and a server without a lease is idle. So nothing must be cleaned up after `kill -9`, and no process id is trusted.
"""
