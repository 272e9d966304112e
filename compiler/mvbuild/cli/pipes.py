"""stdout and stderr -> the same for a reader that may go away, as in `mvbuild run | head`: the rest of the output is dropped.

A run that ended there would leave MVs stale, and its exit code would say nothing about them.
"""

from __future__ import annotations

import os
import stat
import sys
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import Any


class _Pipe(FileIO):
    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            return len(data)


def outlive_readers() -> None:
    """Replace those of the two that are pipes or sockets. The files that they were stay open, in `sys.__stdout__` and `sys.__stderr__`."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, TextIOWrapper) and _is_pipe(stream):
            setattr(sys, name, _over(_Pipe(stream.fileno(), "w", closefd=False), stream))


def _is_pipe(stream: TextIOWrapper) -> bool:
    try:
        mode = os.fstat(stream.fileno()).st_mode
        return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
    except OSError:  # it has no file
        return False


def _over(pipe: FileIO, like: TextIOWrapper) -> TextIOWrapper:
    return TextIOWrapper(
        BufferedWriter(pipe),
        encoding=like.encoding,
        errors=like.errors,
        line_buffering=like.line_buffering,
        write_through=like.write_through,
    )
