"""project directory + command -> the output of the command line, from a child process with limited memory and CPU.

Started as a program, it is the parent of those children: it imports mvbuild once, and forks for each line of stdin. Whatever kills a child,
a crash of an interpreter, a limit or a hang, is reported as its signal.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType

MOST_MEMORY = 1_000_000_000
"""Bytes that a command may have resident at its peak."""
_ADDRESS_SPACE = 2_000_000_000
_HOME = Path(__file__).parents[3]


@dataclass(frozen=True, kw_only=True)
class Told:
    """What came of one command. `killed` is the number of the signal that ended it, or 0."""

    exit: int
    killed: int
    stdout: str
    stderr: str
    peak: int
    """Bytes."""
    seconds: float
    """Of CPU."""

    @property
    def is_bounded(self) -> bool:
        return not self.killed and self.peak < MOST_MEMORY


class Parent:
    """A running parent; as a context it ends with the block."""

    def __init__(self, *, hash_seed: int = 0) -> None:
        paths = [str(_HOME / name) for name in ("compiler", "templates", "tests")]
        env = {name: value for name, value in os.environ.items() if not name.startswith(("MVBUILD_", "DBT_", "NO_COLOR"))}
        env |= {"PYTHONPATH": os.pathsep.join(paths), "PYTHONHASHSEED": str(hash_seed)}
        self._process = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)

    def __enter__(self) -> Parent:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None) -> None:
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def run(self, root: Path, *commands: str, seconds: int = 60) -> Told:
        """`mvbuild <command>` in a directory, one command after the other in one child; the exit code is the highest."""
        self._process.stdin.write(json.dumps([str(root), commands, seconds]) + "\n")
        self._process.stdin.flush()
        return Told(**json.loads(self._process.stdout.readline()))


def _serve() -> None:
    import mvbuild.api
    import mvbuild.cli.compile
    import mvbuild.cli.lint
    import mvbuild.diagnostics.render
    import mvbuild.lint.known_columns
    import mvbuild.lint.output  # noqa: F401

    for line in sys.stdin:
        root, commands, seconds = json.loads(line)
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            pid = os.fork()
            if pid == 0:
                _child(root, commands, seconds, out.fileno(), err.fileno())
            _, status, used = os.wait4(pid, 0)
            told = Told(
                exit=os.WEXITSTATUS(status) if os.WIFEXITED(status) else -1,
                killed=os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0,
                stdout=_text(out),
                stderr=_text(err),
                peak=used.ru_maxrss * 1024,
                seconds=used.ru_utime + used.ru_stime,
            )
        print(json.dumps(asdict(told)), flush=True)


def _text(file: tempfile._TemporaryFileWrapper[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace")


def _child(root: str, commands: Sequence[str], seconds: int, out: int, err: int) -> None:
    """Never returns."""
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    signal.alarm(10 * seconds)
    os.chdir(root)
    from mvbuild.cli.main import main

    highest = 0
    for command in commands:
        sys.argv = ["mvbuild", *command.split()]
        try:
            main()
        except SystemExit as exc:
            highest = max(highest, exc.code if isinstance(exc.code, int) else 1)
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(highest)


if __name__ == "__main__":
    _serve()
