"""`freshness:` of a source and its table in YAML -> SourceFreshness: how old the snapshot of the table may be."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Literal

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, did_you_mean, error
from mvbuild.project.key_types import count_of
from mvbuild.project.yaml_spans import MapNode, Node, ScalarNode, is_empty

PERIODS = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1), "day": timedelta(days=1)}


@dataclass(frozen=True, slots=True)
class SourceFreshness:
    """The ages after which a snapshot is a warning and an error."""

    warn_after: timedelta | None = None
    error_after: timedelta | None = None

    def status(self, age: timedelta) -> Literal["pass", "warn", "error"]:
        if self.error_after is not None and age > self.error_after:
            return "error"
        return "warn" if self.warn_after is not None and age > self.warn_after else "pass"


def source_freshness(blocks: Iterable[Node | None], report: list[Diagnostic]) -> SourceFreshness | None:
    """`blocks` are the values of `freshness`, the farthest first: those of the source, then those of the table. As in dbt, nearer ages
    replace farther ones one by one, and an empty nearer value removes all. None if there is none."""
    ages: dict[str, timedelta | None] = {}
    for block in blocks:
        if block is None:
            continue
        if is_empty(block):
            ages.clear()
        for key in ("warn_after", "error_after"):
            entry = block.get(key) if isinstance(block, MapNode) else None
            if entry is not None:
                ages[key] = None if is_empty(entry.node) else _age(entry.node, report)
    return SourceFreshness(**ages) if any(ages.values()) else None


def _age(node: Node, report: list[Diagnostic]) -> timedelta | None:
    if not isinstance(node, MapNode):
        return None
    count, entry = node.get("count"), node.get("period")
    number = count_of(count.node) if count else None
    period = entry.node.value if entry and isinstance(entry.node, ScalarNode) else None
    if entry and isinstance(period, str) and period not in PERIODS:
        found = error("wrong-type", "'period' must be minute, hour or day", entry.node.span, help=did_you_mean(period, PERIODS))
        if found not in report:
            report.append(found)
        return None
    return number * PERIODS[period] if number is not None and isinstance(period, str) else None
