"""`commit.retry.*` properties -> how often, and after which pauses, a commit that lost a race is tried again."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

from mvbuild.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_PREFIX = "commit.retry."


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """Iceberg's four settings. The defaults are for metadata files on a disk; Iceberg's own are for object stores."""

    number: int = 11
    min_wait_ms: int = 10
    max_wait_ms: int = 100
    timeout_ms: int = 1_800_000

    def attempts(self) -> Iterator[int]:
        """One number per attempt, after its pause."""
        end = time.monotonic() + self.timeout_ms / 1000
        for attempt in range(self.number + 1):
            if attempt:
                wait = min(self.max_wait_ms, self.min_wait_ms * 2 ** min(attempt - 1, 16)) / 1000
                # Two processes that lost the same race must not meet again in the next one.
                time.sleep(wait * (0.5 + random.random()))
                if time.monotonic() > end:
                    return
            yield attempt


def retries(properties: Mapping[str, str]) -> Retries:
    """The settings of a table or MV. A setting that is not a number is ignored."""
    default = Retries()
    return Retries(
        number=_whole(properties, "num-retries", default.number),
        min_wait_ms=_whole(properties, "min-wait-ms", default.min_wait_ms),
        max_wait_ms=_whole(properties, "max-wait-ms", default.max_wait_ms),
        timeout_ms=_whole(properties, "total-timeout-ms", default.timeout_ms),
    )


def _whole(properties: Mapping[str, str], name: str, default: int) -> int:
    value = properties.get(_PREFIX + name, "")
    return int(value) if value.isdecimal() else default
