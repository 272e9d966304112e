"""seeds + what is to be done with them -> what processes made of their parts, each with a JVM of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import TypeVar

T = TypeVar("T")


def in_parts(work: Callable[..., T], seeds: Sequence[int], *given: object, jobs: int) -> Iterator[T]:
    """`work(part, *given)` for as many parts as there are jobs. `work` is a function of a module, because the processes are started from
    scratch."""
    parts = [part for at in range(jobs) if (part := seeds[at::jobs])]
    if not parts:
        return
    with ProcessPoolExecutor(len(parts), get_context("spawn")) as pool:
        for done in as_completed([pool.submit(work, part, *given) for part in parts]):
            yield done.result()
