"""Inputs -> the mark by which a storage table notes that Spark has shown the tree of its query to be the query.

What is told from metadata alone, and rewrites, rest on the tree. The proof needs Spark; its mark is there without.
"""

from __future__ import annotations

import json
from hashlib import sha256

from mvbuild import __version__
from mvbuild.incremental.inputs import Inputs
from mvbuild.ports.catalog import TableState

PROVEN = "mvbuild.proven-query"
"""Property of a storage table. Not of any specification."""


def mark_of(given: Inputs) -> str:
    """Another one whenever the text, the columns of a table or mvbuild are others."""
    columns = [[(f["name"], f["type"]) for f in one.schema["fields"]] for one in given.inputs]
    return sha256(json.dumps([__version__, given.text.text, columns]).encode()).hexdigest()


def is_proven(given: Inputs, storage: TableState) -> bool:
    return storage.properties.get(PROVEN) == mark_of(given)
