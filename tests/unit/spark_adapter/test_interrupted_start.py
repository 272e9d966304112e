"""A start of Spark that is interrupted leaves no JVM."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext, java_gateway

from mvbuild.adapters.spark.java import Java
from mvbuild.adapters.spark.launch import Launch
from mvbuild.adapters.spark.session import _gateway


@pytest.mark.parametrize("failure", [KeyboardInterrupt, RuntimeError])
def test_the_jvm_of_an_interrupted_start_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: type[BaseException]) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def launch(*_: Any) -> None:
        started.append(java_gateway.Popen(["sleep", "600"]))  # type: ignore[attr-defined]
        raise failure

    monkeypatch.setattr(java_gateway, "launch_gateway", launch)
    monkeypatch.setattr(SparkContext, "_gateway", None)
    with pytest.raises(failure):
        _gateway(
            Launch(java=Java(path=tmp_path, major=21, full_version=""), conf={}, class_path=(), java_options=()), tmp_path / "spark.log"
        )
    assert started[0].wait(timeout=10) == -9
    assert java_gateway.Popen is subprocess.Popen  # type: ignore[attr-defined]
