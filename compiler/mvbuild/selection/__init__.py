"""Text of --select, --exclude and selectors.yml -> ids of nodes.

In: a `Graph` and the text of a selection. Out: the ids of the nodes that it selects. The grammar and the methods are dbt's.

Read first: `select.py` (a selection is evaluated), `grammar.py` (its text is parsed), `methods.py` (the table of methods: `tag:`, `path:`,
`state:` ...).

A method that needs more than the graph asks `known.py`, which reads each answer once. `selectors_file.py` reads selectors.yml.
"""

from __future__ import annotations
