"""Another version of a project -> what it has, in one form for every origin.

In: a `Graph`, the manifest of an earlier run, a directory or a git ref. Out: `Version`: what two versions of a project are compared by.
`state:` selectors and reviews compare versions.

Read first: `model.py` (`Version`, and that of a graph), `manifest.py` (the version in a manifest), `other.py` (the version that an option
names, and what differs from it).
"""

from __future__ import annotations
