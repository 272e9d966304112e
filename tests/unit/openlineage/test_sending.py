"""an outbox -> what its process does with the events: into a file, to Kafka, and to a receiver that never answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Consumer, Producer

from mvbuild.openlineage import send
from mvbuild.openlineage.outbox import END, EVENTS
from unit.openlineage.receiver import receiver
from unit.worlds import PROJECT, shop


def outbox(folder: Path, events: int = 1) -> Path:
    """The outbox of a run that has ended."""
    made = folder / "outbox"
    made.mkdir()
    (made / EVENTS).write_text((json.dumps(_event()) + "\n") * events + END)
    return made


def configured(folder: Path, monkeypatch: pytest.MonkeyPatch, **transport: Any) -> None:
    monkeypatch.chdir(folder)
    (folder / "openlineage.yml").write_text(yaml.safe_dump({"transport": transport}))


def test_events_go_into_a_file_as_the_configuration_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "events.json"
    configured(tmp_path, monkeypatch, type="file", log_file_path=str(log), append=True)
    made = outbox(tmp_path)
    send.main(made, os.getppid())
    (line,) = log.read_text().splitlines()
    assert json.loads(line)["eventType"] == "START"
    assert not made.exists()


@pytest.mark.proof
def test_a_run_sends_its_events_to_kafka(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The broker of librdkafka's own tests: it speaks Kafka's protocol on a port of this machine, as long as this producer exists.
    broker = Producer({"bootstrap.servers": "none:1", "test.mock.num.brokers": 1, "log_level": 0})
    (found,) = broker.list_topics(timeout=60).brokers.values()
    address = f"{found.host}:{found.port}"
    configured(tmp_path, monkeypatch, type="kafka", topic="lineage", config={"bootstrap.servers": address})
    assert shop(tmp_path / "shop", PROJECT).run(lineage=True).ok
    consumer = Consumer({"bootstrap.servers": address, "group.id": "test", "auto.offset.reset": "earliest", "log_level": 0})
    consumer.subscribe(["lineage"])
    events: list[dict[str, Any]] = []
    while not events or (events[-1]["job"]["name"], events[-1]["eventType"]) != ("shop.run", "COMPLETE"):
        message = consumer.poll(60)
        assert message is not None, [e["job"]["name"] for e in events]
        # All events of a run have one key, so that they stay in order in one partition.
        assert message.error() or message.key() == b"run:mvbuild/shop.run"
        events += [] if message.error() else [json.loads(message.value())]
    consumer.close()
    assert [e["eventType"] for e in events if e["job"]["name"] == "shop.main.daily"] == ["START", "COMPLETE"]


def test_the_process_ends_although_the_receiver_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = outbox(tmp_path, events=1000)
    code = f"from mvbuild.openlineage import send; send._LAST_SECONDS = 0.5; send.main(send.Path({str(made)!r}), {os.getpid()})"
    with receiver(answers=False) as place:
        configured(tmp_path, monkeypatch, type="http", url=place.url, timeout=300)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
        assert not place.answers.is_set()
    assert done.returncode == 1
    assert "not sent: 1000 events, 0.5 seconds after the run" in done.stderr
    assert not made.exists()


def _event() -> dict[str, Any]:
    run = {"runId": "00000000-0000-4000-8000-000000000000", "facets": {}}
    job = {"namespace": "mvbuild", "name": "shop.run", "facets": {}}
    return {"eventType": "START", "eventTime": "2026-11-24T00:00:00+00:00", "run": run, "job": job, "inputs": [], "outputs": []}
