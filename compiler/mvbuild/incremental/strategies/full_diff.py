"""Case -> Exchange: everything is computed again, and only the rows that differ are written, so that MVs above stay incremental."""

from __future__ import annotations

from mvbuild.incremental.reasons import Refused
from mvbuild.incremental.rewrite import Case, Exchange, Rewrite

NAME = "full-diff"


def rewrite(case: Case) -> Rewrite:
    if not case.has_children:
        raise Refused("no-children", "no other MV reads it")
    for name, _ in case.shape.outputs:
        if case.shape.kinds.get(name) == "uncomparable":
            raise Refused("uncomparable-column", "a column of type map or variant cannot be compared")
    return Rewrite(NAME, Exchange(case.shape.root, None), (), case.shape.outputs)
