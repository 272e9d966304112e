"""What was found in a dbt project -> Scorecard: each thing in it with its verdict and the reasons for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any, Literal, get_args

from mvbuild.dataclass import dataclass
from mvbuild.dbt.reasons import REASONS
from mvbuild.diagnostics.render import location
from mvbuild.source import Span

Verdict = Literal["unchanged", "changed", "disabled", "refused"]
VERDICTS: tuple[Verdict, ...] = ("unchanged", "changed", "disabled", "refused")
"""`disabled`: written as it is, and not checked."""
Kind = Literal[
    "model",
    "seed",
    "source",
    "test",
    "macro",
    "snapshot",
    "analysis",
    "exposure",
    "metric",
    "semantic model",
    "saved query",
    "unit test",
    "package",
    "resource",
    "project",
]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""In the order in which they are listed."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a thing is changed or refused. The place is in the dbt project."""

    code: str
    message: str
    span: Span | None = None
    help: str = ""

    @property
    def refuses(self) -> bool:
        return REASONS[self.code].refuses

    @property
    def advice(self) -> str:
        return self.help or REASONS[self.code].help


@dataclass(slots=True)
class Item:
    """A model, seed, test... of the dbt project while it is judged; reasons are added as they are found."""

    kind: Kind
    name: str
    span: Span
    reasons: list[Reason] = field(default_factory=list)

    def add(self, code: str, message: str, span: Span | None = None, *, help: str = "") -> None:
        reason = Reason(code, message, span or self.span, help)
        if all((r.code, r.message, str(r.span)) != (code, message, str(reason.span)) for r in self.reasons):
            self.reasons.append(reason)

    @property
    def verdict(self) -> Verdict:
        if any(r.refuses for r in self.reasons):
            return "refused"
        if any(r.code == "disabled" for r in self.reasons):
            return "disabled"
        return "changed" if self.reasons else "unchanged"

    @property
    def shown(self) -> tuple[Reason, ...]:
        """The reasons for the verdict: for a refused thing, changes are not relevant."""
        return tuple(r for r in self.reasons if r.refuses) or tuple(self.reasons)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scorecard:
    """`adapter` is that of the profile, or dbt-spark without a profile."""

    project: str
    adapter: str
    target: str
    schema: str
    items: tuple[Item, ...]

    def count(self, verdict: Verdict, kinds: Iterable[str] | None = None) -> int:
        chosen = None if kinds is None else set(kinds)
        return sum(item.verdict == verdict and (chosen is None or item.kind in chosen) for item in self.items)

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(item.kind for item in self.items))

    @property
    def refuses(self) -> bool:
        return any(item.verdict == "refused" for item in self.items)

    def as_json(self) -> Mapping[str, Any]:
        counts = {v: self.count(v) for v in VERDICTS}
        by_kind = {kind: {v: self.count(v, (kind,)) for v in VERDICTS} for kind in self.kinds}
        head = {"project": self.project, "adapter": self.adapter, "target": self.target, "schema": self.schema}
        return {**head, "counts": counts, "kinds": by_kind, "reasons": self.codes(), "items": [_item(item) for item in self.items]}

    def codes(self) -> Mapping[str, int]:
        """How many things have each reason, the most frequent first."""
        counts: dict[str, int] = {}
        for item in self.items:
            for code in dict.fromkeys(r.code for r in item.shown):
                counts[code] = counts.get(code, 0) + 1
        return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def to_text(card: Scorecard) -> str:
    """The scorecard as text: counts, then every reason with its place."""
    kinds = [*card.kinds]
    width = max(len("total"), *(len(_plural(k)) for k in kinds)) if kinds else 5
    lines = [f"{card.project}: dbt-{card.adapter}, target {card.target}, schema {card.schema}", ""]
    lines.append(f"{'':{width}}  " + "  ".join(f"{verdict:>9}" for verdict in VERDICTS))
    lines += (f"{_plural(kind):{width}}  " + "  ".join(f"{card.count(v, (kind,)):>9}" for v in VERDICTS) for kind in kinds)
    lines.append(f"{'total':{width}}  " + "  ".join(f"{card.count(v):>9}" for v in VERDICTS))
    for verdict, title in (("changed", "Imported with changes"), ("disabled", "Disabled, and not checked"), ("refused", "Refused")):
        items = [item for item in card.items if item.verdict == verdict]
        if items:
            lines += ["", f"{title}:", *(line for item in items for line in _lines(item, with_help=verdict == "refused"))]
    return "\n".join(lines)


def _lines(item: Item, *, with_help: bool) -> Iterator[str]:
    yield f"  {item.kind} {item.name}"
    for reason in item.shown:
        yield f"    {reason.span or item.span}  [{reason.code}] {reason.message}"
        if with_help:
            yield f"      help: {reason.advice}"


def _item(item: Item) -> Mapping[str, Any]:
    reasons = [{"code": r.code, "message": r.message, "help": r.advice, "location": location(r.span)} for r in item.shown]
    return {"kind": item.kind, "name": item.name, "verdict": item.verdict, "location": location(item.span), "reasons": reasons}


def _plural(kind: str) -> str:
    return {"analysis": "analyses", "saved query": "saved queries", "project": "project"}.get(kind, f"{kind}s")
