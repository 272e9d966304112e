"""`mvbuild watch`: keep a project fresh until the process is stopped."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, NoReturn

import click

from mvbuild.cli.modes import is_json
from mvbuild.cli.options import Options, branch_option, env, project_options

if TYPE_CHECKING:
    from mvbuild.watch.endpoints import MetricsServer
    from mvbuild.watch.events import Event
    from mvbuild.watch.metrics import Metrics
    from mvbuild.watch.watcher import Watcher


@click.command("watch")
@project_options
@branch_option
@click.option("--interval", type=click.FloatRange(0.1), default=1.0, show_default=True, help="Seconds between polls, at least.")
@click.option("--threads", type=click.IntRange(1, 256), envvar=env("THREADS"), help="How many nodes to refresh at once.")
@click.option("--spark-idle", type=click.FloatRange(0), default=600.0, show_default=True, help="Stop Spark after so many idle seconds.")
@click.option("--reload/--no-reload", default=True, show_default=True, help="Reload the project when its files are edited.")
@click.option("--port", type=click.IntRange(0, 65535), envvar=env("WATCH_PORT"), help="Serve /metrics and /health on this port.")
@click.option("--host", default="127.0.0.1", show_default=True, envvar=env("WATCH_HOST"), help="Address to serve them on.")
@click.option(
    "--notify-command", envvar=env("NOTIFY_COMMAND"), help="Shell command that receives failures and recoveries as JSON on stdin."
)
@click.option("--notify-url", envvar=env("NOTIFY_URL"), help="URL that receives them by POST.")
def command(
    options: Options,
    interval: float,
    threads: int | None,
    spark_idle: float,
    reload: bool,
    port: int | None,
    host: str,
    notify_command: str | None,
    notify_url: str | None,
) -> int:
    """Keep the materialized views fresh: poll what they read, and refresh what its target lag asks for. SIGTERM or Ctrl-C ends it after
    the commits that are being made."""
    from mvbuild.api.sessions import SystemClock
    from mvbuild.watch.metrics import Metrics
    from mvbuild.watch.notify import Notifier, to_command, to_url
    from mvbuild.watch.project import WatchedProject
    from mvbuild.watch.warm import WarmEngine
    from mvbuild.watch.watcher import Watcher

    clock = SystemClock()
    warm = WarmEngine(clock, spark_idle)
    metrics = Metrics(clock, lambda: warm.is_running)
    receivers = [*([to_command(notify_command)] if notify_command else []), *([to_url(notify_url)] if notify_url else [])]
    notifier = Notifier(receivers, lambda message: click.echo(f"warning: {message}", err=True))
    pool = ThreadPoolExecutor(max_workers=max(1, threads or 4), thread_name_prefix="batch")
    watcher = Watcher(
        project=WatchedProject(options.graph, clock, warm, threads),
        clock=clock,
        cpu=time.process_time,
        submit=pool.submit,
        warm=warm,
        on_event=_to_all(_write_json if is_json() else _write_text, notifier),
        metrics=metrics,
        interval=interval,
        reload=reload,
    )
    watcher.start()
    server = _server(host, port, metrics) if port is not None else None
    try:
        return _until_stopped(watcher)
    except KeyboardInterrupt:
        _leave()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        notifier.close()
        if server is not None:
            server.close()


def _leave() -> NoReturn:
    """Without waiting for threads: one may be starting Spark."""
    with suppress(OSError):
        click.echo("interrupted: what was published stays, nothing else was changed", err=True)
        sys.stdout.flush()
    os._exit(130)


def _to_all(*receivers: Callable[[Event], None]) -> Callable[[Event], None]:
    def on_event(event: Event) -> None:
        for receive in receivers:
            receive(event)

    return on_event


def _server(host: str, port: int, metrics: Metrics) -> MetricsServer:
    from mvbuild.diagnostics import ProjectError, error
    from mvbuild.watch.endpoints import MetricsServer

    try:
        server = MetricsServer(host, port, metrics)
    except OSError as exc:
        message = f"Cannot listen on {host}:{port}: {exc.strerror or exc}"
        raise ProjectError([error("command-line", message, help="Choose another port with --port, or any free one with 0.")]) from exc
    click.echo(f"metrics: http://{host}:{server.port}/metrics", err=True)
    return server


def _until_stopped(watcher: Watcher) -> int:
    """Turns in a thread of their own, so that a signal interrupts none of them."""
    failures: list[BaseException] = []
    context = click.get_current_context()

    def turns() -> None:
        try:
            # With what Click knows of the command: errors of an edit are printed as its options say.
            with context.scope(cleanup=False):
                while not watcher.stopping.is_set():
                    watcher.stopping.wait(watcher.turn())
        except BaseException as exc:  # noqa: BLE001  it is raised again in the main thread
            failures.append(exc)

    def stop(*_: object) -> None:
        # In a thread, because the main thread may be inside of what `stop` needs.
        Thread(target=watcher.stop, name="stop").start()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, _at_once)

    thread = Thread(target=turns, name="watch")
    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        thread.start()
        thread.join()
        watcher.stop()
        watcher.end()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if failures:
        raise failures[0]
    return 0


def _at_once(*_: object) -> None:
    """A second signal does not wait for commits."""
    raise KeyboardInterrupt


def _write_json(event: Event) -> None:
    click.echo(json.dumps(event.as_json()))


def _write_text(event: Event) -> None:
    clock = time.strftime("%H:%M:%S", time.localtime(event.at_ms / 1000))
    of_node = f" {event.name}" if event.name else ""
    seconds = event.data.get("seconds")
    more = f" in {seconds:.2f}s" if isinstance(seconds, float) else ""
    retry = event.data.get("retry_after_seconds")
    again = f" (again in {retry} s)" if retry is not None else ""
    text = f": {event.message}" if event.message else ""
    word = click.style(event.kind, fg="red" if event.is_bad else "green" if event.kind in ("refreshed", "recovered", "in-time") else None)
    click.echo(f"{clock}  {word}{of_node}{more}{text}{again}")
