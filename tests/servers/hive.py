"""the metastore that PySpark ships -> a process on a free port, over a Derby database in memory and a local warehouse."""

from __future__ import annotations

import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from servers.postgres import free_port

_START_SECONDS = 90
_JVM = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dderby.system.durability=test")
_OPEN = ("java.lang", "java.net", "java.util", "java.util.concurrent", "java.nio", "sun.nio.ch")
_LOGGING = """
status=error
appender.file.type=File
appender.file.name=file
appender.file.fileName={folder}/metastore.log
appender.file.layout.type=PatternLayout
appender.file.layout.pattern=%d %p %c{{1}}: %m%n
rootLogger.level=warn
rootLogger.appenderRef.file.ref=file
"""


class NoServer(Exception):
    """Why there is no metastore on this machine."""


@dataclass(frozen=True, kw_only=True)
class Hive:
    uri: str
    warehouse: Path
    log: Path

    @property
    def properties(self) -> dict[str, str]:
        """The properties of a catalog. Hive 2 has no timestamps with a zone, which PyIceberg writes unless it is configured."""
        return {"type": "hive", "uri": self.uri, "warehouse": f"file://{self.warehouse}", "hive.hive2-compatible": "true"}

    def clear(self) -> None:
        """Drop whatever there is."""
        from pyiceberg.catalog.hive import _HiveClient

        with _HiveClient(self.uri) as client:
            for database in client.get_all_databases():
                for table in client.get_all_tables(database):
                    client.drop_table(database, table, False)
                if database != "default":
                    client.drop_database(database, False, False)
        shutil.rmtree(self.warehouse, ignore_errors=True)


@contextmanager
def running(root: Path) -> Iterator[Hive]:
    """NoServer if this machine cannot run it."""
    java = shutil.which("java")
    if java is None or find_spec("thrift") is None:
        raise NoServer("there is no Java" if java is None else "thrift is not installed")
    import pyspark
    from py4j.java_gateway import JavaGateway

    (root / "log4j2.properties").write_text(_LOGGING.format(folder=root))
    server = Hive(uri=f"thrift://127.0.0.1:{free_port()}", warehouse=root / "warehouse", log=root / "metastore.log")
    (root / "hive-site.xml").write_text(_site(server, root))
    opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPEN]
    with (root / "java.log").open("wb") as log:
        gateway = JavaGateway.launch_gateway(
            java_path=java,
            jarpath=next(Path(pyspark.__file__).parent.glob("jars/py4j-*.jar")).as_posix(),
            classpath=f"{root}:{Path(pyspark.__file__).parent}/jars/*",
            javaopts=[*_JVM, *opened, f"-Dderby.stream.error.file={root}/derby.log"],
            redirect_stdout=log,
            redirect_stderr=log,
            die_on_exit=True,
        )
    process = gateway.java_process
    try:
        _start(gateway, server)
        yield server
    finally:
        gateway.close()
        process.kill()
        process.wait()


def _start(gateway: Any, server: Hive) -> None:
    jvm, port = gateway.jvm, server.uri.rpartition(":")[2]
    hive = jvm.org.apache.hadoop.hive
    # The tables of locks: a metastore makes only those of its objects by itself.
    hive.metastore.txn.TxnDbUtil.prepDb(hive.conf.HiveConf())
    _in_a_thread(gateway, "org.apache.hadoop.hive.metastore.HiveMetaStore", ["-p", port])
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", int(port)), timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError(f"the metastore did not start: {server.log.read_text()[-2000:]}")


def _in_a_thread(gateway: Any, main_class: str, arguments: list[str]) -> None:
    """`main` of Java in a thread of Java: a call that never comes back would be in the way of closing the gateway."""
    lang = gateway.jvm.java.lang
    given = gateway.new_array(lang.String, len(arguments))
    for at, argument in enumerate(arguments):
        given[at] = argument
    all_given = gateway.new_array(lang.Object, 1)
    all_given[0] = given
    handles = lang.invoke.MethodHandles
    kind = lang.invoke.MethodType.methodType(lang.Void.TYPE, given.getClass())
    main = handles.insertArguments(handles.publicLookup().findStatic(lang.Class.forName(main_class), "main", kind), 0, all_given)
    thread = lang.Thread(lang.invoke.MethodHandleProxies.asInterfaceInstance(lang.Class.forName("java.lang.Runnable"), main))
    thread.setDaemon(True)
    thread.start()


def _site(server: Hive, root: Path) -> str:
    settings = {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:memory:{root.name}-{time.time_ns()};create=true",
        "javax.jdo.option.ConnectionDriverName": "org.apache.derby.iapi.jdbc.AutoloadedDriver",
        "datanucleus.schema.autoCreateAll": "true",
        "datanucleus.connectionPoolingType": "DBCP",
        "hive.metastore.schema.verification": "false",
        "hive.metastore.warehouse.dir": f"file://{server.warehouse}",
        "hive.metastore.execute.setugi": "false",
        "hive.async.log.enabled": "false",
        "hive.log4j.file": f"{root}/log4j2.properties",
    }
    properties = "".join(f"<property><name>{key}</name><value>{value}</value></property>" for key, value in settings.items())
    return f"<configuration>{properties}</configuration>"
