"""What an earlier command computed from the same input <-> target/cache.sqlite, so that it is not computed again.

In and out: `Cache`, tables of texts by keys; a key is a hash of everything that the text depends on. A command that finds nothing in the
cache does the work again: results never depend on a cache (docs/decisions/010).

Read first: `store.py` (`Cache`, the tables and the file), `codec.py` (frozen types as JSON), `lazy.py` (types whose fields are read when
they are needed).
"""

from __future__ import annotations
