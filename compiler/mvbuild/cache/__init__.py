"""What an earlier run made of a file <-> files in target/, so that it is not made again.

In and out: `Cache`, text values by keys; a key is a hash of everything that the value depends on. A run that finds nothing there does the
work again: a cache is never needed for a right answer.

Read first: `entries.py` (`Cache`, and how frozen types become JSON), `file.py` (the file with its index), `lazy.py` (types whose fields are
read when something asks for them).
"""

from __future__ import annotations
