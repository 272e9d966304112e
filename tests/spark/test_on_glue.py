"""A project on Glue, with its files in S3. Spark finds the storages there, and no views."""

from __future__ import annotations

from pathlib import Path

import pytest

from servers.moto import SECRET, NoServer, running
from spark.conftest import Lake
from spark.served import built, live, live_on_branch

pytestmark = pytest.mark.proof


def test_a_project(lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKE_SECRET", SECRET)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "lake")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    for key, value in (("aws.accessKeyId", "lake"), ("aws.secretAccessKey", SECRET)):
        # The environment of a Java that is started now; this one was before.
        lake.session._jvm.java.lang.System.setProperty(key, value)
    (tmp_path / "moto").mkdir()
    try:
        with running(tmp_path / "moto") as server, built(lake, tmp_path / "project", server.glue) as project:
            live(project, views=False)
            live_on_branch(project)
            assert project.sql("SHOW VIEWS IN lake.mart") == []
    except NoServer as error:
        pytest.skip(f"no moto: {error}")
    written = [path for path in (tmp_path / "project" / "target").rglob("*") if path.is_file()]
    assert written
    assert not any(SECRET.encode() in path.read_bytes() for path in written)
