"""an order on stdin -> a Spark Connect server on the loopback address, until it is idle, retired, or its JVM ends.

This process owns the JVM, which ends when its standard input is closed: so also if this process is killed. It imports PySpark only because
`session.start_classic` starts Spark in exactly the way of a command without a warm engine.
"""

from __future__ import annotations

import os
import secrets
import signal
import sys
import time
from dataclasses import field, replace
from pathlib import Path
from threading import Event, Timer
from typing import TYPE_CHECKING, Any

from mvbuild.adapters.spark.java import Java
from mvbuild.adapters.spark.launch import Launch
from mvbuild.adapters.spark.session import start_classic
from mvbuild.adapters.spark.warm.folder import Folder, Record
from mvbuild.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mvbuild.adapters.spark.warm.folder import Held

_TURN_SECONDS = 1.0
_STOP_SECONDS = 30.0
"""A JVM that does not end by itself is killed after this time."""
_LOG_BYTES = 32 * 1024 * 1024
_PLUGIN = "org.apache.spark.sql.connect.SparkConnectPlugin"
_SERVICE = "org.apache.spark.sql.connect.service.SparkConnectService$"
_JAVA_OPTIONS = (
    # After an OutOfMemoryError, nothing that a JVM says can be relied on: the next command starts another.
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:MaxMetaspaceSize=512m",
    # An idle server gives the memory that it does not need back to the machine.
    "-XX:G1PeriodicGCInterval=30000",
)

ENTRY = """import json, sys
order = json.load(sys.stdin)
sys.path[:] = order.pop("path")
from mvbuild.adapters.spark.warm.server import serve
serve(**order)"""
"""What Python runs, in isolated mode: modules of the current directory must not be imported instead of those of the command."""


def serve(*, folder: str, launch: Mapping[str, Any], keep_seconds: float, project: str, target: str, machine: str) -> None:
    """Until the server ends. What goes wrong is in the log."""
    os.umask(0o077)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    place = Folder(Path(folder))
    own = place.own(seconds=2.0)
    if own is None:
        sys.exit("another process is the server of this folder")
    token = secrets.token_urlsafe(32)
    session: Any = start_classic(_with_connect(launched(launch), token), place.log)
    server = Server(place=place, session=session, process=session.sparkContext._gateway.proc, keep_seconds=keep_seconds)
    signal.signal(signal.SIGTERM, lambda *_: server.stopping.set())
    place.write(
        Record(
            pid=os.getpid(),
            port=int(getattr(getattr(session._jvm, _SERVICE), "MODULE$").localPort()),
            token=token,
            started_ms=time.time_ns() // 1_000_000,
            keep_seconds=keep_seconds,
            memory=session.sparkContext.getConf().get("spark.driver.memory", "1g"),
            project=project,
            target=target,
            machine=machine,
        )
    )
    server.wait()
    server.stop()
    os._exit(0)  # at its end, PySpark would wait for the JVM


def order(launch: Launch) -> dict[str, Any]:
    """`launch` for the standard input of a server."""
    return {
        "java": [str(launch.java.path), launch.java.major, launch.java.full_version],
        "conf": dict(launch.conf),
        "class_path": list(map(str, launch.class_path)),
        "java_options": list(launch.java_options),
    }


def launched(order: Mapping[str, Any]) -> Launch:
    """The inverse of `order`."""
    path, major, full_version = order["java"]
    return Launch(
        java=Java(path=Path(path), major=major, full_version=full_version),
        conf=order["conf"],
        class_path=tuple(map(Path, order["class_path"])),
        java_options=tuple(order["java_options"]),
    )


def _with_connect(launch: Launch, token: str) -> Launch:
    plugins = ",".join(filter(None, [launch.conf.get("spark.plugins", ""), _PLUGIN]))
    conf = {
        **launch.conf,
        "spark.plugins": plugins,
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.connect.authenticate.token": token,
    }
    return replace(launch, conf=conf, java_options=(*launch.java_options, *_JAVA_OPTIONS))


@dataclass(kw_only=True)
class Server:
    """A running server, and what decides that it ends."""

    place: Folder
    session: Any
    process: Any
    """The JVM."""
    keep_seconds: float
    stopping: Event = field(default_factory=Event)
    _used: int = 0
    _last: float = field(default_factory=time.monotonic)
    _is_clean: bool = True

    def wait(self) -> None:
        """Until it must end. Then no command uses it, and none can begin to; unless it was asked to stop, or its JVM ended."""
        while not self.stopping.wait(_TURN_SECONDS) and self.process.poll() is None:
            record = self.place.record()
            is_retired = record is None or record.pid != os.getpid()
            free = self.place.unused()
            if free is None:
                # A command that is killed leaves the time at which it began.
                self.place.touch()
                self._last, self._is_clean = time.monotonic(), False
                continue
            if self._is_over(is_retired):
                return
            self._clean(free)

    def _is_over(self, is_retired: bool) -> bool:
        """Asked while no command uses it. One may have used it since the last turn."""
        used = self.place.used()
        if used != self._used:
            self._used, self._last, self._is_clean = used, time.monotonic(), False
        return is_retired or time.monotonic() - self._last >= self.keep_seconds

    def _clean(self, free: Held) -> None:
        """A command that was killed leaves queries that run, and rows that are cached."""
        try:
            if not self._is_clean:
                self.session.sparkContext.cancelAllJobs()
                self.session.catalog.clearCache()
                self._is_clean = True
                if self.place.log.stat().st_size > _LOG_BYTES:
                    os.truncate(self.place.log, 0)
        finally:
            free.release()

    def stop(self) -> None:
        """End the JVM, and this process with it."""
        record = self.place.record()
        if record is None or record.pid == os.getpid():
            self.place.retire()
        last = Timer(_STOP_SECONDS, os.killpg, (os.getpgrp(), signal.SIGKILL))
        last.daemon = True
        last.start()
        self.process.stdin.close()
        self.process.wait()
