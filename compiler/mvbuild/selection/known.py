"""Graph -> what selectors need besides it: another version, the last run, freshness, git. Each is read on demand, and once."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from mvbuild.diagnostics import ProjectError, did_you_mean, error
from mvbuild.graph.model import Graph, NodeId

if TYPE_CHECKING:
    from mvbuild.versions.model import Version

# Most commands need neither git nor another version of the project: both are imported where they are used.

STATES = ("modified", "new", "old", "unmodified")
STATUSES = ("success", "error", "skipped", "reused", "fail", "pass", "warn")
RESULTS = "run_results.json"
Judge = Callable[[], Mapping[NodeId, str]]
T = TypeVar("T")


class Known:
    """`judge` returns the current freshness of MVs; None if the command does not read the catalog."""

    def __init__(self, judge: Judge | None = None) -> None:
        self._judge = judge
        self._found: dict[str, object] = {}

    def state(self, graph: Graph, value: str) -> set[NodeId]:
        """`state:` with a value of STATES."""
        from mvbuild.versions.model import version_of
        from mvbuild.versions.other import KINDS, all_modifications

        states = (*STATES, *(f"modified.{kind}" for kind in KINDS))
        if value not in states:
            raise ProjectError([error("unknown-selector", f"Unknown state '{value}'", help=did_you_mean(value, states))])
        old, new = self._once("old", lambda: _other(graph)), self._once("new", lambda: version_of(graph, "the working copy"))
        ids = {*new.nodes, *new.units}
        if value == "new":
            return ids - old.nodes.keys() - old.units.keys()
        if value == "old":
            return ids & {*old.nodes, *old.units}
        ways = self._once("ways", lambda: all_modifications(old, new))
        if value == "unmodified":
            return {id for id, kinds in ways.items() if not kinds}
        kind = value.partition(".")[2]
        if kind:
            return {id for id, kinds in ways.items() if kind in kinds}
        return {id for id in ids if id not in ways or ways[id]}

    def result(self, graph: Graph, value: str) -> set[NodeId]:
        """`result:` with a status of the last run."""
        if value not in STATUSES:
            raise ProjectError([error("unknown-selector", f"Unknown status '{value}'", help=did_you_mean(value, STATUSES))])
        return {id for id, status in self._once("results", lambda: _results(graph)).items() if status == value}

    def freshness(self, term: str) -> Mapping[NodeId, str]:
        """MV -> its current state."""
        if self._judge is None:
            message = f"'{term}' needs the catalog, which this command does not read"
            help = "`mvbuild status`, `plan` and `run` read it: use the selector with one of them."
            raise ProjectError([error("unusable-selector", message, help=help)])
        return self._once("freshness", self._judge)

    def changed_files(self, graph: Graph, ref: str) -> frozenset[str]:
        """Files of the project that differ between the working copy and a git ref."""
        from mvbuild.git import changed_files, commit_of

        return self._once(f"git:{ref}", lambda: changed_files(commit_of(graph.project.root, ref)))

    def _once(self, what: str, read: Callable[[], T]) -> T:
        if what not in self._found:
            self._found[what] = read()
        return self._found[what]  # type: ignore[return-value]


def _other(graph: Graph) -> Version:
    if graph.reading.state is None:
        raise ProjectError([error("no-state", "A `state:` selector compares with another version of the project, and none was given")])
    from mvbuild.versions.other import other_version

    return other_version(graph, graph.reading.state)


def _results(graph: Graph) -> Mapping[NodeId, str]:
    """Node or test -> its status, from --state if that is a directory, otherwise from the last run here."""
    path = graph.project.target_path / RESULTS
    if graph.reading.state is not None:
        from mvbuild.versions.other import places_of

        places = (place / RESULTS for place in places_of(graph.project.root, graph.reading.state))
        path = next((place for place in places if place.is_file()), path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return {str(one["unique_id"]): _status(one) for one in content["results"]}
    except FileNotFoundError as exc:
        help = "Run something first, or name the directory of another run's artifacts with --state."
        raise ProjectError([error("no-state", f"{path} does not exist: nothing was run yet", help=help)]) from exc
    except OSError as exc:
        raise ProjectError([error("bad-state", f"{path} cannot be read: {exc.strerror or exc}")]) from exc
    except (ValueError, KeyError, TypeError, RecursionError) as exc:
        raise ProjectError([error("bad-state", f"{path} is not a file of run results", help="Run again to regenerate it.")]) from exc


def _status(result: Mapping[str, Any]) -> str:
    """The status as `mvbuild run` reports it: the file calls a reused node a success, as its readers expect."""
    reused = result["adapter_response"].get("reused") if isinstance(result.get("adapter_response"), dict) else False
    return "reused" if reused else str(result["status"])
