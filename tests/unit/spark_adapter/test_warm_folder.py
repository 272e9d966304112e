"""The folder of a warm engine: who lives and who uses it is decided by locks, which end with their process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Timer

import pytest

from mvbuild.adapters.spark.warm.engines import stop_warm_engines, warm_engines
from mvbuild.adapters.spark.warm.folder import Folder, Held, NotPrivate, Record, folders, home, private_home
from mvbuild.adapters.spark.warm.identity import machine

COMPILER = Path(__file__).parents[3] / "compiler"
SERVER = """
import signal, sys
from pathlib import Path
from mvbuild.adapters.spark.warm.folder import Folder, Record
folder = Folder(Path(sys.argv[1]))
assert folder.own(1.0)
if sys.argv[2] == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
signal.pause()
"""
RECORD = Record(
    pid=1, port=2, token="a-token", started_ms=3, keep_seconds=900.0, memory="2g", project="/shop", target="dev", machine=machine()
)

StartServer = Callable[[Folder], "subprocess.Popen[str]"]


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"MVBUILD_CACHE_DIR": str(tmp_path / "cache")}


@pytest.fixture
def folder(env: dict[str, str]) -> Folder:
    made = Folder(private_home(env) / "0123")
    made.make()
    return made


@pytest.fixture
def start() -> Iterator[StartServer]:
    """Starts a process that lives in a folder as a server does, in a process group of its own."""
    started: list[subprocess.Popen[str]] = []

    def server(folder: Folder, kind: str = "") -> subprocess.Popen[str]:
        command = [sys.executable, "-c", SERVER, str(folder.path), kind]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={"PYTHONPATH": str(COMPILER)}, start_new_session=True)
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    yield server
    for process in started:
        process.kill()
        process.wait()


def test_only_its_user_can_read_the_folder_and_what_is_in_it(folder: Folder, env: dict[str, str]) -> None:
    folder.write(RECORD)
    held = folder.lease(0.0)
    assert held is not None
    paths = [home(env), folder.path, *folder.path.iterdir()]
    assert len(paths) == 4
    assert [path for path in paths if path.stat().st_mode & 0o077] == []


@pytest.mark.parametrize("mode", [0o755, 0o710, 0o777])
def test_a_folder_that_others_can_read_is_refused(env: dict[str, str], mode: int) -> None:
    private_home(env).chmod(mode)
    with pytest.raises(NotPrivate, match="readable only by you"):
        private_home(env)


def test_a_folder_of_another_user_is_refused(env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    made = private_home(env)
    mine = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: mine + 1)
    assert home(env) != made
    made.rename(home(env))
    with pytest.raises(NotPrivate, match="your own directory"):
        private_home(env)


def test_a_link_in_place_of_the_folder_is_refused(env: dict[str, str], tmp_path: Path) -> None:
    path = home(env)
    path.parent.mkdir(parents=True)
    path.symlink_to(tmp_path)
    with pytest.raises(NotPrivate):
        private_home(env)


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotPrivate, match="cannot be made"):
        private_home({"MVBUILD_CACHE_DIR": str(tmp_path / "file")})


def test_a_record_is_read_again_and_its_token_is_never_shown(folder: Folder) -> None:
    folder.write(RECORD)
    folder.write(RECORD)
    assert folder.record() == RECORD
    assert "a-token" not in repr(folder.record())


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"pid": 1}', "\0"])
def test_a_record_that_cannot_be_read_is_none(folder: Folder, content: str) -> None:
    (folder.path / "record.json").write_text(content)
    assert folder.record() is None


def test_a_server_that_is_killed_is_not_alive(folder: Folder, start: StartServer) -> None:
    assert not folder.is_alive()
    server = start(folder)
    assert folder.is_alive()
    assert folder.owner() == server.pid
    assert folder.own(0.0) is None
    server.kill()
    server.wait()
    assert not folder.is_alive()
    assert folder.owner() is None


def test_a_server_cannot_end_while_commands_use_it(folder: Folder) -> None:
    first, second = folder.lease(0.0), folder.lease(0.0)
    assert first is not None
    assert second is not None
    assert folder.unused() is None
    assert not first.make_exclusive()
    second.release()
    assert folder.unused() is None
    assert first.make_exclusive()
    first.make_shared()
    first.release()
    free = folder.unused()
    assert free is not None
    assert folder.lease(0.0) is None
    free.release()


def test_each_use_is_noted(folder: Folder) -> None:
    seen = [folder.used()]
    for _ in range(3):
        held = folder.lease(0.0)
        assert held is not None
        held.release()
        seen.append(folder.used())
    assert len(set(seen)) == 4


def test_status_and_stop(folder: Folder, env: dict[str, str], start: StartServer) -> None:
    server = start(folder)
    (engine,) = warm_engines(env)
    assert (engine.pid, engine.state, engine.record) == (server.pid, "starting", None)
    folder.write(RECORD)
    assert [(e.state, e.record) for e in warm_engines(env)] == [("idle", RECORD)]
    held = folder.lease(0.0)
    assert held is not None
    assert [e.state for e in warm_engines(env)] == ["in use"]
    ended, later = stop_warm_engines(env, force=False)
    assert (ended, [e.pid for e in later]) == ([], [server.pid])
    # It is left to the command, and no other command begins to use it.
    assert folder.is_alive()
    assert folder.record() is None
    assert [(e.state, e.record) for e in warm_engines(env)] == [("ending", RECORD)]
    held.release()
    ended, later = stop_warm_engines(env, force=True)
    assert ([e.pid for e in ended], later) == ([server.pid], [])
    assert server.wait() == -signal.SIGTERM
    assert folders(env) == []


def test_a_server_that_looks_whether_it_is_used_is_not_in_use(folder: Folder, env: dict[str, str], start: StartServer) -> None:
    server = start(folder)
    folder.write(RECORD)
    for asked in (lambda: [e.state for e in warm_engines(env)], lambda: [e.state for e in stop_warm_engines(env, force=False)[0]]):
        looks = folder.unused()
        assert looks is not None
        later = Timer(0.1, looks.release)
        later.start()
        assert asked() == ["idle"]
        later.join()
    assert server.wait() == -signal.SIGTERM


def test_a_server_that_does_not_end_is_killed(
    folder: Folder, env: dict[str, str], start: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mvbuild.adapters.spark.warm.engines._STOP_SECONDS", 0.2)
    server = start(folder, "deaf")  # type: ignore[call-arg]
    folder.write(RECORD)
    stop_warm_engines(env, force=False)
    assert server.wait() == -signal.SIGKILL


def test_what_a_dead_server_left_is_removed(folder: Folder, env: dict[str, str]) -> None:
    folder.write(RECORD)
    held = folder.lease(0.0)
    assert held is not None
    # A command is about to start another server there.
    assert stop_warm_engines(env, force=False) == ([], [])
    assert folder.path.exists()
    held.release()
    assert warm_engines(env) == []
    assert stop_warm_engines(env, force=False) == ([], [])
    assert not folder.path.exists()


def test_a_lock_in_a_folder_that_is_gone(tmp_path: Path) -> None:
    gone = Folder(tmp_path / "gone")
    assert Held.of(gone.path / "lock") is None
    assert not gone.is_alive()
    assert gone.used() == 0
