"""`mvbuild engine status|stop`: the warm engines of this user."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from mvbuild.cli.options import output_options
from mvbuild.cli.subcommands import Subcommands

if TYPE_CHECKING:
    from mvbuild.adapters.spark.warm.engines import WarmEngine


@click.group("engine", cls=Subcommands)
def command() -> None:
    """The Spark that a command leaves warm for the next one, if the target has `spark: {keep_warm: 15m}`."""


@command.command("status")
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@output_options
def status(output: str) -> int:
    """List the warm engines of all projects of this user."""
    from mvbuild import api

    found = api.warm_engines()
    if output == "json":
        click.echo(json.dumps([_object(engine) for engine in found], indent=2))
        return 0
    for engine in found:
        click.echo(_line(engine))
    if not found:
        click.echo("no warm engine")
    return 0


@command.command("stop")
@click.option("-f", "--force", is_flag=True, help="Also stop engines that are in use: the queries of their commands fail.")
@output_options
def stop(force: bool) -> int:
    """Stop the warm engines of all projects of this user. One that a command uses ends when the command does."""
    from mvbuild import api

    ended, later = api.stop_warm_engines(force=force)
    for engine in ended:
        click.echo(f"stopped the engine {_what(engine)}")
    for engine in later:
        click.echo(f"the engine {_what(engine)} is in use: it ends when the command does")
    if not ended and not later:
        click.echo("no warm engine")
    return 0


def _line(engine: WarmEngine) -> str:
    """`engine 4711 of /home/me/shop (target dev): idle for 3m, ends in 12m; at most 2g of heap`."""
    from datetime import timedelta

    from mvbuild.project.setting_values import written

    record, state = engine.record, str(engine.state)
    if record is None:
        return f"engine {_what(engine)}: {state}"
    if state == "idle":
        idle = timedelta(seconds=round(engine.idle_seconds))
        left = timedelta(seconds=max(0, round(record.keep_seconds - engine.idle_seconds)))
        state = f"idle for {written(idle)}, ends in {written(left)}"
    return f"engine {_what(engine)}: {state}; at most {record.memory} of heap"


def _what(engine: WarmEngine) -> str:
    of = f" of {engine.record.project} (target {engine.record.target})" if engine.record else ""
    return f"{engine.pid}{of}"


def _object(engine: WarmEngine) -> dict[str, Any]:
    record = engine.record
    return {
        "pid": engine.pid,
        "state": engine.state,
        "project": record.project if record else None,
        "target": record.target if record else None,
        "port": record.port if record else None,
        "started_ms": record.started_ms if record else None,
        "memory": record.memory if record else None,
        "keep_seconds": record.keep_seconds if record else None,
        "idle_seconds": round(engine.idle_seconds, 1),
    }
