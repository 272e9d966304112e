"""the folder of an outbox -> its events, sent by openlineage-python to wherever its configuration says. Runs in a process of its own."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from threading import Timer
from typing import Any

from mvbuild import __version__
from mvbuild.openlineage.outbox import EVENTS, SENT

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
        made[name] = known(**content, producer=PRODUCER) if known else _own(content)
    return made


def _own(content: Mapping[str, Any]) -> Any:
    from openlineage.client.facet_v2 import RunFacet

    return RunFacet(producer=PRODUCER).with_additional_properties(**content)


def send(folder: Path, client: Any) -> int:
    """Send all events; how many could not be sent."""
    failed = 0
    with (folder / SENT).open("ab", buffering=0) as sent:
        for line in lines(folder / EVENTS):
            try:
                client.emit(run_event(json.loads(line)))
            except Exception as exc:  # noqa: BLE001 - the other events may still arrive
                failed += 1
                print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} not sent: {type(exc).__name__}: {exc}", file=sys.stderr)  # noqa: T201
            else:
                sent.write(b".")
    return failed


def lines(path: Path) -> Iterator[str]:
    """The lines of a file that grows, until the one that ends it, or until the process that writes it is gone."""
    parent = os.getppid()
    with path.open(encoding="utf-8") as file:
        begun = ""
        while True:
            begun += file.readline()
            if begun.endswith("\n"):
                if begun == "end\n":
                    _limit()
                    return
                yield begun
                begun = ""
            elif os.getppid() != parent:
                return
            else:
                time.sleep(0.05)


def _limit() -> None:
    """The process ends some time after the run, whatever a receiver does."""
    timer = Timer(_LAST_SECONDS, os._exit, (1,))
    timer.daemon = True
    timer.start()


def main(folder: Path) -> None:
    from openlineage.client import OpenLineageClient

    try:
        client = OpenLineageClient()
        send(folder, client)
        client.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
