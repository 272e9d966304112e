"""How a JVM is started: in a locale in which it can read every file; and a start that is interrupted leaves none."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext, java_gateway

from mvbuild.adapters.spark.java import Java
from mvbuild.adapters.spark.launch import Launch
from mvbuild.adapters.spark.session import _gateway

LAUNCH = Launch(java=Java(path=Path("java"), major=21, full_version=""), conf={}, class_path=(), java_options=())


@pytest.mark.parametrize("failure", [KeyboardInterrupt, RuntimeError])
def test_the_jvm_of_an_interrupted_start_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: type[BaseException]) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def launch(*_: Any) -> None:
        started.append(java_gateway.Popen(["sleep", "600"]))  # type: ignore[attr-defined]
        raise failure

    monkeypatch.setattr(java_gateway, "launch_gateway", launch)
    monkeypatch.setattr(SparkContext, "_gateway", None)
    with pytest.raises(failure):
        _gateway(LAUNCH, tmp_path / "spark.log")
    assert started[0].wait(timeout=10) == -9
    assert java_gateway.Popen is subprocess.Popen  # type: ignore[attr-defined]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_before_its_process_id_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals) -> None:
    """It comes while the start of the process has not returned: the new process sends it."""
    noted = tmp_path / "pid"

    def interrupt() -> None:
        noted.write_text(str(os.getpid()))
        os.kill(os.getppid(), number)

    def launch(*_: Any) -> None:
        java_gateway.Popen(["sleep", "30"], preexec_fn=interrupt)  # type: ignore[attr-defined]
        raise AssertionError("the signal was lost")

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(java_gateway, "launch_gateway", launch)
    monkeypatch.setattr(SparkContext, "_gateway", None)
    before = signal.signal(number, stop)
    try:
        with pytest.raises(KeyboardInterrupt):
            _gateway(LAUNCH, tmp_path / "spark.log")
        assert signal.getsignal(number) is stop
    finally:
        signal.signal(number, before)
    _, status = os.waitpid(int(noted.read_text()), 0)
    assert os.WTERMSIG(status) == signal.SIGKILL


@pytest.mark.parametrize(("locale", "wanted"), [("C", "C.UTF-8"), ("POSIX", "C.UTF-8"), ("de_DE.UTF-8", "de_DE.UTF-8"), (None, "")])
def test_a_jvm_in_the_c_locale_can_read_files_with_other_letters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, locale: str | None, wanted: str
) -> None:
    seen: list[str] = []

    def launch(*_: Any) -> None:
        process = java_gateway.Popen(["sh", "-c", 'printf %s "$LC_ALL"'], stdout=subprocess.PIPE, env=dict(os.environ))  # type: ignore[attr-defined]
        seen.append(process.communicate()[0].decode())

    monkeypatch.setattr(java_gateway, "launch_gateway", launch)
    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.delenv("LC_ALL", raising=False)
    if locale:
        monkeypatch.setenv("LC_ALL", locale)
    _gateway(LAUNCH, tmp_path / "spark.log")
    assert seen == [wanted]
