"""What an earlier run made of a file <-> files in target/, so that it is not made again.

In and out: `Cache`, texts by keys; a key is a hash of everything that the text depends on. A run that finds nothing in the cache does the
work again: results never depend on a cache.

Read first: `entries.py` (`Cache`, and frozen types as JSON), `file.py` (the file with its index), `lazy.py` (types whose fields are read
when they are needed).
"""

from __future__ import annotations
