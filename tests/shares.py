"""MVBUILD_PROOF_SHARE=2/8 -> the proofs of every eighth file, from the second one. Without it, all proofs run.

`.ci/run` runs another share each day. The header of every run prints the share, so that you can run it again.
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
        raise ValueError(f"MVBUILD_PROOF_SHARE is {text!r}. Use 1/8 to 8/8, for example")
    return share


def dealt(files: Iterable[Hashable], count: int) -> Iterator[int]:
    """The number of the share of each test, by its file: tests of one file may share what they work on."""
    numbers: dict[Hashable, int] = {}
    for file in files:
        yield numbers.setdefault(file, len(numbers) % count + 1)


SHARE = parsed(os.environ.get("MVBUILD_PROOF_SHARE", "1/1"))
