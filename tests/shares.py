"""MVBUILD_PROOF_SHARE=2/5 -> every fifth proof, from the second one. Without it, all proofs run.

`.ci/run` runs another share each day, so that all proofs run in any five days. The header of every run prints the share, so that you can run it again.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Iterator
from typing import NamedTuple


class Share(NamedTuple):
    number: int
    """1 to `count`."""
    count: int

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


def parsed(text: str) -> Share:
    number, _, count = text.partition("/")
    share = Share(int(number), int(count))
    if not 1 <= share.number <= share.count:
        raise ValueError(f"MVBUILD_PROOF_SHARE is {text!r}. Use 1/5 to 5/5, for example")
    return share


def dealt(groups: Iterable[Hashable], count: int) -> Iterator[int]:
    """The number of the share of each test, of which those of one group are together. A group of None is a test of its own."""
    dealt_groups: dict[Hashable, int] = {}
    tests = 0
    for group in groups:
        if group is None or group not in dealt_groups:
            tests += 1
            number = (tests - 1) % count + 1
            if group is not None:
                dealt_groups[group] = number
        yield number if group is None else dealt_groups[group]


SHARE = parsed(os.environ.get("MVBUILD_PROOF_SHARE", "1/1"))
