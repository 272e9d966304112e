"""`mvbuild maintain`: compaction, expiry of snapshots and removal of orphan files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mvbuild.cli.options import ListCommand, Options, project_options, selection_options

if TYPE_CHECKING:
    from mvbuild.graph.model import Graph
    from mvbuild.lifecycle.maintain import Maintained


@click.command("maintain", cls=ListCommand)
@project_options
@selection_options
@click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")
def command(options: Options, select: tuple[str, ...], exclude: tuple[str, ...], dry_run: bool) -> int:
    """Compact the storage of MVs, expire old snapshots and remove orphan files, by the `maintain:` policy of each model."""
    from mvbuild import api
    from mvbuild.api.sessions import Event
    from mvbuild.cli.output import report, say
    from mvbuild.refresh.result import Message

    graph = options.graph()

    def tell(event: Event) -> None:
        if isinstance(event, Message):
            say(event.message)

    def show(one: Maintained) -> None:
        click.echo(line(graph, one, dry_run=dry_run))

    _, done, warnings = api.maintain(graph, select=select, exclude=exclude, dry_run=dry_run, on_event=tell, on_done=show)
    report([*warnings, *(d for one in done for d in one.diagnostics)])
    click.echo(total(done, dry_run=dry_run))
    return 1 if any(one.diagnostics for one in done) else 0


def line(graph: Graph, one: Maintained, *, dry_run: bool) -> str:
    """`lake.mart.daily: 12 files compacted to 1, 3 snapshots expired (40 files), 2 orphan files removed`."""
    parts = []
    if one.compaction:
        compacted = f"{_count(one.compaction.before, 'file')} compacted"
        parts.append(f"up to {_count(one.compaction.before, 'file')} to compact" if dry_run else f"{compacted} to {one.compaction.after}")
    if one.snapshots:
        expired = f"{_count(one.snapshots, 'snapshot')} {'to expire' if dry_run else 'expired'}"
        parts.append(expired if dry_run else f"{expired} ({_count(one.expired_files, 'file')})")
    if one.dropped_views:
        parts.append(f"{_count(one.dropped_views, 'unused auxiliary view')} {'to drop' if dry_run else 'dropped'}")
    if one.orphans:
        parts.append(f"{_count(one.orphans, 'orphan file')} {'to remove' if dry_run else 'removed'}")
    parts_done = [*parts, *one.notes, *("failed" for _ in one.diagnostics[:1])]
    return f"{graph.nodes[one.node].identifier}: {', '.join(parts_done) or 'nothing to do'}"


def total(done: tuple[Maintained, ...], *, dry_run: bool) -> str:
    """The last line."""
    compacted, failed = sum(one.compaction is not None for one in done), sum(bool(one.diagnostics) for one in done)
    files = sum(one.expired_files + one.orphans for one in done)
    parts = [
        f"{'up to ' if dry_run else ''}{compacted} of {_count(len(done), 'MV')} {'to compact' if dry_run else 'compacted'}",
        f"{_count(sum(one.snapshots for one in done), 'snapshot')} {'to expire' if dry_run else 'expired'}",
        f"{_count(sum(one.orphans for one in done), 'orphan file')} to remove" if dry_run else f"{_count(files, 'file')} removed",
        *([f"{failed} failed"] if failed else []),
    ]
    return f"{'Dry run' if dry_run else 'Done'}: {', '.join(parts)}."


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"
