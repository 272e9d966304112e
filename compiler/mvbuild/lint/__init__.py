"""Graph + columns -> findings: a table of rules, each with a code, a level and, where it is safe, a fix.

In: `Graph`, and the columns of its nodes where they are known. Out: a report of findings, and edits that fix some of them.

Read first: `rules/__init__.py` (the table), `facts.py` (what rules can ask), `check.py` (runs the rules on the selected models and files).
"""

from __future__ import annotations
