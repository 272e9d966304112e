"""the folder of an outbox -> its events, sent by openlineage-python to wherever its configuration says. Runs in a process of its own."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from threading import Thread
from typing import Any

from mvbuild import __version__
from mvbuild.openlineage.outbox import END, EVENTS, SENT

PRODUCER = f"https://pypi.org/project/mvbuild/{__version__}/"
_LAST_SECONDS = 60.0
"""How long the process goes on after the run."""

_RUN = {
    "parent": "parent_run.ParentRunFacet",
    "errorMessage": "error_message_run.ErrorMessageRunFacet",
    "processing_engine": "processing_engine_run.ProcessingEngineRunFacet",
}
_JOB = {
    "jobType": "job_type_job.JobTypeJobFacet",
    "sql": "sql_job.SQLJobFacet",
}
_DATASET = {
    "schema": "schema_dataset.SchemaDatasetFacet",
    "columnLineage": "column_lineage_dataset.ColumnLineageDatasetFacet",
    "symlinks": "symlinks_dataset.SymlinksDatasetFacet",
    "version": "dataset_version_dataset.DatasetVersionDatasetFacet",
    "datasetType": "dataset_type_dataset.DatasetTypeDatasetFacet",
    "storage": "storage_dataset.StorageDatasetFacet",
    "documentation": "documentation_dataset.DocumentationDatasetFacet",
}
_INPUT = {"dataQualityAssertions": "data_quality_assertions_dataset.DataQualityAssertionsDatasetFacet"}
_OUTPUT = {"outputStatistics": "output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet"}
"""Name of a facet -> its class in `openlineage.client.facet_v2`."""


def run_event(event: Mapping[str, Any]) -> Any:
    """The client's object for an event of `events.py`."""
    from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState

    run, job = event["run"], event["job"]
    inputs = [InputDataset(**_named(d), inputFacets=_facets(d.get("inputFacets", {}), _INPUT)) for d in event["inputs"]]
    outputs = [OutputDataset(**_named(d), outputFacets=_facets(d.get("outputFacets", {}), _OUTPUT)) for d in event["outputs"]]
    return RunEvent(
        eventType=RunState(event["eventType"]),
        eventTime=event["eventTime"],
        run=Run(runId=run["runId"], facets=_facets(run["facets"], _RUN)),
        job=Job(namespace=job["namespace"], name=job["name"], facets=_facets(job["facets"], _JOB)),
        producer=PRODUCER,
        inputs=inputs,
        outputs=outputs,
    )


def _named(dataset: Mapping[str, Any]) -> dict[str, Any]:
    return {"namespace": dataset["namespace"], "name": dataset["name"], "facets": _facets(dataset["facets"], _DATASET)}


def _facets(facets: Mapping[str, Any], classes: Mapping[str, str]) -> dict[str, Any]:
    """The client's facets. One that its version does not know, and mvbuild's own, have the schema of any facet."""
    from openlineage.client import facet_v2

    made: dict[str, Any] = {}
    for name, content in facets.items():
        module, _, of_class = classes.get(name, "").partition(".")
        known: Callable[..., Any] | None = getattr(getattr(facet_v2, module, None), of_class, None) if module else None
        made[name] = known(**(_parent(content) if name == "parent" else content), producer=PRODUCER) if known else _own(content)
    return made


def _parent(content: Mapping[str, Any]) -> dict[str, Any]:
    """With the client's classes: its Kafka transport makes the key of a message from their fields."""
    from openlineage.client.facet_v2 import parent_run

    return {"run": parent_run.Run(**content["run"]), "job": parent_run.Job(**content["job"])}


def _own(content: Mapping[str, Any]) -> Any:
    from openlineage.client.facet_v2 import RunFacet

    return RunFacet(producer=PRODUCER).with_additional_properties(**content)


def send(folder: Path, client: Any, parent: int) -> int:
    """Send all events; how many could not be sent."""
    failed = 0
    with (folder / SENT).open("ab", buffering=0) as sent:
        for line in lines(folder / EVENTS, parent):
            try:
                client.emit(run_event(json.loads(line)))
            except Exception as exc:  # noqa: BLE001 - the other events may still arrive
                failed += 1
                print(f"{_now()} not sent: {type(exc).__name__}: {exc}", file=sys.stderr)  # noqa: T201
            else:
                sent.write(b".")
    return failed


def lines(path: Path, parent: int) -> Iterator[str]:
    """The lines of a file that grows, until the one that ends it, or until the process that writes it is gone."""
    with path.open(encoding="utf-8") as file:
        begun = ""
        while True:
            begun += file.readline()
            if begun.endswith("\n"):
                if begun == END:
                    return
                yield begun
                begun = ""
            elif os.getppid() != parent:
                return
            else:
                time.sleep(0.05)


def is_over(folder: Path, parent: int) -> bool:
    """Whether the run has ended: it wrote its last line, or its process is gone."""
    with (folder / EVENTS).open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - len(END)))
        return file.read() == END.encode() or os.getppid() != parent


def _give_up(folder: Path, parent: int) -> None:
    """End the process some time after the run, whatever a receiver does: the thread that sends may wait for it for hours."""
    try:
        while not is_over(folder, parent):
            time.sleep(0.5)
        time.sleep(_LAST_SECONDS)
        put = (folder / EVENTS).read_bytes().removesuffix(END.encode()).count(b"\n")
        left = put - (folder / SENT).stat().st_size
    except FileNotFoundError:  # all were sent
        return
    print(f"{_now()} not sent: {left} events, {_LAST_SECONDS:g} seconds after the run", file=sys.stderr, flush=True)  # noqa: T201
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


def _now() -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S")


def main(folder: Path, parent: int) -> None:
    """`parent`: the process of the run."""
    from openlineage.client import OpenLineageClient

    Thread(target=_give_up, args=(folder, parent), daemon=True).start()
    try:
        client = OpenLineageClient()
        send(folder, client, parent)
        client.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
