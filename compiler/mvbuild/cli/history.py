"""`mvbuild history MV`: its refreshes that can still be read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from mvbuild.cli.options import Options, branch_option, project_options
from mvbuild.cli.proposals import names
from mvbuild.refresh.result import count_rows
from mvbuild.serve.words import duration, size, utc

if TYPE_CHECKING:
    from mvbuild.formats.record import BaseTable
    from mvbuild.storage.history import PastRefresh


@click.command("history")
@click.argument("mv", shell_complete=names)
@project_options
@branch_option
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(options: Options, mv: str, output: str) -> int:
    """List the refreshes of MV that can still be read: id, time, strategy and why it was full, rows, bytes written and expected (to be read
    and written), seconds and those expected, and the snapshots that were read."""
    from mvbuild import api
    from mvbuild.cli.branch import warn_if_unknown
    from mvbuild.cli.output import say

    graph = options.graph()
    warn_if_unknown(graph)
    node, past = api.history(graph, mv)
    if output == "json":
        click.echo(json.dumps([past_object(p) for p in past], indent=2))
        return 0
    if not past:
        say(f"{node.identifier} was never refreshed, or its history is not kept.")
        return 0
    for one in reversed(past):
        click.echo(_line(one))
        for read in one.record.base_tables:
            click.echo(f"    {_name(read)}{f' ({read.ref})' if read.ref else ''} at {read.snapshot_id}")
        for view in one.record.child_views:
            click.echo(f"    {'.'.join((*view.namespace, view.name))} in version {view.version_id}")
    return 0


def _line(past: PastRefresh) -> str:
    """`refresh 3  2026-11-21T14:06:21Z  merge  3 rows added, 12 removed  1.2 kB written, 80 kB of 3 MB expected  4.2s, 1.3s expected`."""
    rows = f"{count_rows(past.rows_added or 0)} added, {past.rows_removed or 0:,} removed"
    head = click.style(f"refresh {past.refresh_id}", bold=True)
    parts = [head, utc(past.at_ms), how(past), rows, _bytes(past), took(past), "(current)" if past.is_current else ""]
    return "  ".join(part for part in parts if part)


def how(past: PastRefresh) -> str:
    """`full (limit) from 2 auxiliary views`."""
    text = (past.strategy or "?") + (f" ({past.reason})" if past.reason else "")
    if past.auxiliary_views:
        text += f" from {past.auxiliary_views} auxiliary view{'s' * (past.auxiliary_views != 1)}"
    return text


def _bytes(past: PastRefresh) -> str:
    written = "" if past.bytes_written is None else f"{size(past.bytes_written)} written"
    of = f" of {size(past.full_bytes)}" if past.full_bytes is not None and past.strategy != "full" else ""
    expected = "" if past.expected_bytes is None else f"{size(past.expected_bytes)}{of} expected"
    return ", ".join(part for part in (written, expected) if part)


def took(past: PastRefresh) -> str:
    """`4.2s, 1.3s expected`."""
    durations = ((past.seconds, ""), (past.expected_seconds, " expected"))
    return ", ".join(f"{duration(round(seconds * 1000))}{what}" for seconds, what in durations if seconds is not None)


def past_object(past: PastRefresh) -> dict[str, Any]:
    """A refresh as JSON."""
    return {
        "refresh_id": past.refresh_id,
        "current": past.is_current,
        "refreshed_at": utc(past.at_ms),
        "strategy": past.strategy or None,
        "auxiliary_views": past.auxiliary_views,
        "rows_added": past.rows_added,
        "rows_removed": past.rows_removed,
        "reason": past.reason or None,
        "expected_bytes": past.expected_bytes,
        "expected_rows": past.expected_rows,
        "expected_seconds": past.expected_seconds,
        "full_bytes": past.full_bytes,
        "bytes_written": past.bytes_written,
        "seconds": past.seconds,
        "snapshot_id": past.snapshot.snapshot_id,
        "view_version_id": past.record.view_version_id,
        "base_tables": [
            {"name": _name(t), "uuid": t.uuid or None, "type": t.type, "snapshot_id": t.snapshot_id, "ref": t.ref}
            for t in past.record.base_tables
        ],
        "child_views": [
            {"name": ".".join((*v.namespace, v.name)), "uuid": v.uuid, "version_id": v.version_id} for v in past.record.child_views
        ],
    }


def _name(table: BaseTable) -> str:
    return ".".join((*table.namespace, table.name)) or table.uuid
