"""`mvbuild explain MV`: its query, what changed below it, and which strategies can follow that, without Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from mvbuild.cli.options import Options, branch_option, project_options
from mvbuild.cli.proposals import names
from mvbuild.serve.words import size

if TYPE_CHECKING:
    from mvbuild.incremental.cost import Cost
    from mvbuild.plan.explain import Explanation, TableNow, Verdict
    from mvbuild.ports.changes import FileGroup, TableChange

_NOTHING = {
    "nothing": "nothing",
    "compacted": "only compacted: same rows",
    "same-rows": "newer snapshots, same rows",
}
_SUPPOSED = {
    "inserts": "If rows are only added",
    "deletes": "If rows are also updated or deleted",
}


@click.command("explain")
@click.argument("mv", shell_complete=names)
@project_options
@branch_option
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(options: Options, mv: str, output: str) -> int:
    """Show how MV is refreshed: its query as a tree, what changed in each table since the last refresh, and the result of every strategy;
    if one cannot be used, the operator that prevents it and what to do."""
    from mvbuild import api
    from mvbuild.cli.output import report

    found = api.explain(options.graph(), mv)
    report(found.warnings)
    click.echo(json.dumps(explanation_object(found), indent=2) if output == "json" else explanation_text(found))
    return 1 if found.step.action == "blocked" else 0


def explanation_text(found: Explanation) -> str:
    """Paragraphs with titles."""
    given: set[tuple[str, str]] = set()
    blocks = [_head(found), ["Query", *_tree(found)], *_last(found), ["Changes since the last refresh", *map(_table_line, found.tables)]]
    if found.kept:
        from mvbuild.cli.auxiliary_views import views_trees

        blocks.append(["Auxiliary views", *(f"    {line}" for line in views_trees(found.kept))])
    if found.choice:
        blocks.append([f"Next refresh: {_decision(found)}", *_verdicts(found.verdicts, given)])
    elif found.step.action in ("reuse", "record"):
        waits = "nothing to do until what it reads is refreshed" if not found.freshness.is_fresh else "nothing to do"
        blocks.append([f"Next refresh: {waits if found.step.action == 'reuse' else 'only the record is updated'}"])
    elif found.step.diagnostic is None:
        depends = found.step.action == "refresh"
        blocks.append([f"Next refresh: {'depends on what it reads, which is refreshed first' if depends else found.step.action}"])
    blocks += [[_SUPPOSED[one.change], *_verdicts(one.verdicts, given)] for one in found.supposed]
    if found.untold and found.step.action in ("reuse", "record"):
        blocks.append(["If rows are added, updated or deleted", "    full: mvbuild cannot follow changes through this query, see above"])
    return "\n\n".join("\n".join(block) for block in blocks)


def explanation_object(found: Explanation) -> dict[str, Any]:
    """The explanation as JSON."""
    from mvbuild.artifacts.run_results import failed_object, reason_object
    from mvbuild.cli.auxiliary_views import views_object
    from mvbuild.cli.history import past_object
    from mvbuild.cli.plan import choice_object
    from mvbuild.diagnostics.render import location

    return {
        "unique_id": found.node.id,
        "relation": str(found.node.identifier),
        "state": found.freshness.state,
        "reasons": [reason_object(r) for r in found.freshness.reasons],
        "failed_tests": failed_object(found.freshness.failed),
        "action": found.step.action,
        "error": found.step.diagnostic.message if found.step.diagnostic else None,
        "query": [{"depth": one.depth, "operator": one.text} for one in found.tree],
        "last_refresh": past_object(found.last) if found.last else None,
        "unsupported": {"message": found.untold[0], "at": location(found.untold[1])} if found.untold else None,
        "tables": [_table_object(one) for one in found.tables],
        **choice_object(found.step.strategy, found.choice),
        "auxiliary_views": views_object(found.kept),
        "strategies": [_verdict_object(one) for one in found.verdicts],
        "supposed": {one.change: [_verdict_object(v) for v in one.verdicts] for one in found.supposed},
    }


# --- text --------------------------------------------------------------------------------------------------------------------------


def _head(found: Explanation) -> list[str]:
    from mvbuild.serve.words import reason_text, refused_data

    lines = [f"{click.style(str(found.node.identifier), bold=True)}  {found.freshness.state}"]
    lines += [f"    {reason_text(r)}" for r in found.freshness.reasons]
    lines += [f"    tests-failed: {refused_data(found.freshness.failed)}"] if found.freshness.failed else []
    if found.step.diagnostic:
        lines.append(f"    error: {found.step.diagnostic.message}")
    return lines


def _last(found: Explanation) -> Iterator[list[str]]:
    """How the current rows were computed: an estimate of the next refresh does not know what Spark refused in the last one."""
    from mvbuild.cli.history import how, took
    from mvbuild.incremental.reasons import CODES
    from mvbuild.serve.words import utc

    if found.last is None:
        return
    details = (how(found.last), f"at {utc(found.last.at_ms)}", took(found.last))
    meaning, help = CODES.get(found.last.reason, ("", ""))
    # The reason compares with the refresh before, not with the tables of now.
    lines = [f"    At that time: {meaning}"] if meaning else []
    lines += [f"      help: {help}"] if help and not help.startswith("Nothing") else []
    yield [f"Last refresh: {', '.join(filter(None, details))}", *lines]


def _tree(found: Explanation) -> Iterator[str]:
    from mvbuild.diagnostics.render import excerpt

    for one in found.tree:
        yield f"    {'  ' * one.depth}{one.text}"
    if found.untold:
        message, span = found.untold
        yield f"    unknown: {message}"
        yield from (f"    {line}" for line in (excerpt(span) if span else ()))


def _table_line(one: TableNow) -> str:
    at = f"  snapshot {_snapshot(one.old)} -> {_snapshot(one.new)}" if None not in (one.old, one.new) and one.old != one.new else ""
    if one.what in _NOTHING:
        return f"    {one.name}{at}: {_NOTHING[one.what]}"
    if one.change is None:
        why = f"{one.refused.code}: {one.refused.message}" if one.refused else "unknown"
        return f"    {one.name}{at}: {why}"
    relevance = f"; not relevant: {one.irrelevant}" if one.what == "not-relevant" else ""
    return f"    {one.name}{at}: {_change(one.change)}{relevance}"


def _snapshot(id_: int | None) -> str:
    return "none" if id_ == -1 else str(id_)


def _change(change: TableChange) -> str:
    """`3 files with 1,000 rows (1.2 MB) added, 1 file with 10 rows (4.0 kB) removed`."""
    groups = (("added", change.added), ("removed", change.removed), ("with other deletes", change.altered))
    return ", ".join(f"{_files(group)} {word}" for word, group in groups if group.files)


def _files(group: FileGroup) -> str:
    return f"{group.files:,} file{'s' * (group.files != 1)} with {group.rows:,} row{'s' * (group.rows != 1)} ({size(group.bytes)})"


def _decision(found: Explanation) -> str:
    from mvbuild.cli.plan import bytes_text, seconds_text

    choice = found.choice
    assert choice is not None
    why = f", {choice.code}: {choice.message}" if choice.code else f": {choice.message}" if choice.message else ""
    work = bytes_text(choice)
    rows = f", about {choice.expected.rows:,} rows" if choice.expected and work else ""
    return f"{choice.strategy}{why}{f'; {seconds_text(choice)} of processor time; reads and writes {work}{rows}' if work else ''}"


def _verdicts(verdicts: tuple[Verdict, ...], given: set[tuple[str, str]]) -> Iterator[str]:
    """One line per strategy; place and advice only when they first occur. Strategies with the same result share one line."""
    refused = [one for one in verdicts if not one.is_possible]
    if len(refused) > 1 and len({(one.code, one.message) for one in refused}) == 1:
        yield f"    no   all others     {refused[0].code}: {refused[0].message}"
        yield from _advice(refused[0], given)
        verdicts = tuple(one for one in verdicts if one.is_possible)
    for one in verdicts:
        word = "yes" if one.is_possible else "no "
        by = f" by {', '.join(one.keys)}" if one.keys else ""
        parts = [f"{one.code}: {one.message}" if one.code else "", _work(one.work) if one.work else ""]
        text = "; ".join(part for part in (f"{'chosen' if one.is_chosen else ''}{by}".strip(), *parts) if part)
        yield f"    {word}  {one.strategy:<13}  {text}".rstrip()
        yield from _advice(one, given)


def _work(work: Cost) -> str:
    """`1.3s (0.9s for statements, 0.4s for rows), 1.2 MB, 300 rows`."""
    of = f"{work.fixed:.1f}s for statements, {work.work:.1f}s for rows"
    of += f", {work.correction:.1f} times by earlier refreshes" if work.correction != 1 else ""
    return f"{work.seconds:.1f}s ({of}), {size(work.bytes)}, {work.rows:,} rows"


def _advice(one: Verdict, given: set[tuple[str, str]]) -> Iterator[str]:
    from mvbuild.diagnostics.render import excerpt

    key = (one.code, str(one.span))
    if one.is_possible or key in given:
        return
    given.add(key)
    yield from (f"         {line}" for line in (excerpt(one.span) if one.span else ()))
    if not one.help.startswith("Nothing"):
        yield f"           help: {one.help}"


# --- objects -----------------------------------------------------------------------------------------------------------------------


def _table_object(one: TableNow) -> dict[str, Any]:
    groups = {"added": one.change.added, "removed": one.change.removed, "altered": one.change.altered} if one.change else {}
    return {
        "name": one.name,
        "changed": one.what,
        "reason": {"code": one.refused.code, "message": one.refused.message} if one.refused else None,
        "irrelevant": one.irrelevant or None,
        "recorded_snapshot": one.old,
        "current_snapshot": one.new,
        **{name: {"files": group.files, "rows": group.rows, "bytes": group.bytes} for name, group in groups.items()},
    }


def _verdict_object(one: Verdict) -> dict[str, Any]:
    from mvbuild.cli.plan import work_object
    from mvbuild.diagnostics.render import location

    return {
        "strategy": one.strategy,
        "possible": one.is_possible,
        "chosen": one.is_chosen,
        "code": one.code or None,
        "message": one.message or None,
        "help": one.help or None,
        "at": location(one.span),
        "keys": list(one.keys),
        "expected": work_object(one.work),
    }
