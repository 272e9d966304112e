"""Passwords, tokens and keys are nowhere written down. Each of them is a canary: what a run writes, prints and keeps is searched for it."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from subprocess import PIPE, Popen
from threading import Event, Thread
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog

from mvbuild import api
from servers import moto, postgres, rest
from servers.postgres import PASSWORD
from spark.canaries import below, leaks
from unit.cli.bad_input import call, lay_out

pytestmark = pytest.mark.proof

KEY_ID, KEY, SESSION = "canary-key-id", "canary/s3+key==", "canary-of-a-session"
CLIENT, HEADER, OF_SPARK = "canary-of-a-client", "canary-of-a-header", "canary-of-spark"
CANARIES = (PASSWORD, KEY_ID, KEY, SESSION, CLIENT, HEADER, OF_SPARK)
ENVIRONMENT = {
    "LAKE_KEY_ID": KEY_ID,
    "LAKE_KEY": KEY,
    "LAKE_SESSION": SESSION,
    "CRM_LOGIN": f"shop:{CLIENT}",
    "CRM_HEADER": f"Bearer {HEADER}",
    "OF_SPARK": OF_SPARK,
}
TARGET = """
target: there
targets:
  there:
    namespace: main
    catalog:
      name: lake
      type: sql
      uri: "{{{{ env_var('LAKE_URI') }}}}"
      warehouse: s3://{bucket}/lake
      s3.endpoint: {s3}
      s3.access-key-id: "{{{{ env_var('LAKE_KEY_ID') }}}}"
      s3.secret-access-key: "{{{{ env_var('LAKE_KEY') }}}}"
      s3.session-token: "{{{{ env_var('LAKE_SESSION') }}}}"
    spark:
      master: local[2]
      config:
        spark.driver.memory: 1g
        spark.driver.extraJavaOptions: -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC
        spark.log.level: INFO
        spark.eventLog.enabled: true
        spark.eventLog.compress: false
        spark.eventLog.dir: file://{events}
        spark.network.password.of.nobody: "{{{{ env_var('OF_SPARK') }}}}"
        spark.hadoop.fs.s3a.secret.key: "{{{{ env_var('OF_SPARK') }}}}"
        spark.sql.catalog.other.credential: "nobody:{{{{ env_var('OF_SPARK') }}}}"
"""
SOURCE = """
sources:
  - name: crm
    catalog: crm_store
    properties:
      type: rest
      uri: {rest}
      oauth2-server-uri: {rest}/v1/oauth/tokens
      credential: "{{{{ env_var('CRM_LOGIN') }}}}"
      header.X-Canary: "{{{{ env_var('CRM_HEADER') }}}}"
      s3.access-key-id: "{{{{ env_var('LAKE_KEY_ID') }}}}"
    tables: [{{name: customers, columns: [{{name: customer, data_tests: [not_null]}}]}}]
"""
MODELS = {
    "seeds/orders.csv": "order_id,customer\n1,1\n2,1\n3,2\n",
    "models/of_orders.sql": "SELECT customer, count(*) AS orders FROM {{ ref('orders') }} GROUP BY customer\n",
    "models/in_a_file.sql": "SELECT c.customer, c.country FROM {{ source('crm', 'customers') }} c\n",
    "models/all.yml": (
        "models:\n  - name: in_a_file\n    config: {storage: {format: metadata-file}}\n"
        "    columns: [{name: country, data_tests: [{accepted_values: {arguments: {values: [XX]}, config: {severity: warn}}}]}]\n"
    ),
    "models/a_view.sql": "{{ config(materialized='view') }}\nSELECT * FROM {{ ref('of_orders') }}\n",
    "models/fails.sql": "SELECT raise_error('no: ' || max(order_id)) AS never FROM {{ ref('orders') }}\n",
}


@dataclass(frozen=True, kw_only=True)
class House:
    """A project with secrets wherever they can be, and the servers that it lives on."""

    root: Path
    postgres: postgres.Postgres
    s3: moto.Moto
    environment: dict[str, str]

    @property
    def project(self) -> Path:
        return self.root / "project"

    def command(self, *arguments: str) -> tuple[int, dict[str, bytes]]:
        """The exit code of `mvbuild`, and what it showed: its output, and the command lines of the processes that it started."""
        command = [sys.executable, "-m", "mvbuild.cli.main", *arguments, "--project-dir", str(self.project)]
        ended, lines = Event(), set[bytes]()
        with Popen(command, stdout=PIPE, stderr=PIPE, env=self.environment, cwd=self.root) as process:
            watching = Thread(target=_watch, args=(ended, self.environment["TMPDIR"].encode(), lines))
            watching.start()
            out, err = process.communicate(timeout=300)
            ended.set()
            watching.join()
        name = " ".join(arguments)
        return process.returncode, {f"stdout of {name}": out, f"stderr of {name}": err, f"command lines of {name}": b"\n".join(lines)}

    def kept(self) -> dict[str, bytes]:
        """What is in the catalog and in the bucket."""
        import boto3

        rows = self.postgres.execute("SELECT * FROM iceberg_tables") + self.postgres.execute("SELECT * FROM iceberg_namespace_properties")
        keys = {"aws_access_key_id": "any", "aws_secret_access_key": "any", "region_name": "us-east-1"}
        client: Any = boto3.client("s3", endpoint_url=self.s3.uri, **keys)
        names = [one["Key"] for one in client.list_objects_v2(Bucket=moto.BUCKET)["Contents"]]
        objects = {name: client.get_object(Bucket=moto.BUCKET, Key=name)["Body"].read() for name in names}
        return {"the catalog": json.dumps(rows, default=str).encode(), **objects}


def _watch(ended: Event, mark: bytes, lines: set[bytes]) -> None:
    """The command lines of processes with the mark in their environment, which those have that are started by others of them."""
    while not ended.wait(0.1):
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if mark in path.with_name("environ").read_bytes():
                    lines.add(path.read_bytes())
            except OSError:
                continue


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    root = tmp_path_factory.mktemp("secrets")
    for name in ("moto", "rest", "events", "temporary"):
        (root / name).mkdir()
    with ExitStack() as stack:
        try:
            database = stack.enter_context(postgres.running())
            store = stack.enter_context(moto.running(root / "moto"))
            server = stack.enter_context(rest.running(root / "rest"))
        except (postgres.NoServer, moto.NoServer, rest.NoServer) as error:
            pytest.skip(str(error))
        customers = load_catalog("any", **server.properties)
        customers.create_namespace("crm")
        rows = pa.table({"customer": [1, 2], "country": ["DE", "FR"]})
        customers.create_table("crm.customers", rows.schema).append(rows)
        customers.close()  # type: ignore[attr-defined]
        files = {
            "mvbuild.yml": "name: shop\n" + TARGET.format(bucket=moto.BUCKET, s3=store.uri, events=root / "events"),
            "models/sources.yml": SOURCE.format(rest=server.uri),
            **MODELS,
        }
        for name, text in files.items():
            path = root / "project" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        own = {"LAKE_URI": database.uri(), "TMPDIR": str(root / "temporary")}
        yield House(root=root, postgres=database, s3=store, environment={**os.environ, **ENVIRONMENT, **own})


def test_what_a_run_writes_shows_and_keeps(house: House) -> None:
    shown: dict[str, bytes] = {}
    for code, *arguments in ((1, "--debug", "run", "--offline"), (0, "debug"), (0, "plan"), (0, "explain", "of_orders"), (0, "status")):
        exit_code, said = house.command(*arguments)
        assert exit_code == code, said
        shown |= said
    assert b"fails" in shown["stderr of --debug run --offline"]
    assert b"of_orders" in shown["stdout of status"]
    assert any(b"SparkSubmit" in lines for lines in shown.values())
    written, kept = below(house.project / "target", house.root / "events", house.root / "temporary"), house.kept()
    assert any("spark.log" in name for name in written)
    assert any(b"SparkListenerEnvironmentUpdate" in content for content in written.values())
    assert any(name.endswith(".mv.json") or "in_a_file" in name for name in kept)
    assert any(".metadata.json" in name for name in kept)
    assert leaks(shown | written | kept, CANARIES) == []


SECRET = "canary.of/a:failure"
FAILURES = {
    "nobody listens": "type: sql, uri: \"postgresql+psycopg2://lake:{{ env_var('ESCAPED') }}@127.0.0.1:9/lake\"",
    "not escaped": "type: sql, uri: \"postgresql+psycopg2://lake:{{ env_var('SECRET') }}@127.0.0.1:9/lake\"",
    "no port": "type: sql, uri: \"postgresql+psycopg2://lake:{{ env_var('ESCAPED') }}@127.0.0.1:port/lake\"",
    "no driver": "type: sql, uri: \"mysql+nothing://lake:{{ env_var('ESCAPED') }}@127.0.0.1:9/lake\"",
    "in the query of a url": "type: sql, uri: \"postgresql+psycopg2://127.0.0.1:9/lake?user=lake&password={{ env_var('ESCAPED') }}\"",
    "a token": "type: rest, uri: URI, token: \"{{ env_var('SECRET') }}\"",
    "a login": "type: rest, uri: URI, oauth2-server-uri: URI/tokens, credential: \"shop:{{ env_var('SECRET') }}\"",
    "a header": "type: rest, uri: URI, header.Authorization: \"Bearer {{ env_var('SECRET') }}\"",
    "a header of another name": "type: rest, uri: URI, header.X-Api-Key: \"{{ env_var('SECRET') }}\"",
    "a user in a url": "type: rest, uri: \"http://lake:{{ env_var('ESCAPED') }}@127.0.0.1:9\"",
    "hive": 'type: hive, uri: "thrift://127.0.0.1:9", hive.token: "{{ env_var(\'SECRET\') }}"',
}


@pytest.fixture(scope="module")
def echo() -> Iterator[str]:
    """A server that refuses everything, and repeats the request."""

    class Handler(BaseHTTPRequestHandler):
        def _refuse(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
            told = f"you said {self.headers} {body}".replace("\r", " ").replace("\n", " ")
            content = json.dumps({"error": {"message": told, "type": "Refused", "code": 400}}).encode()
            self.send_response(400)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_HEAD = _refuse  # noqa: N815

        def log_message(self, *_: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("command", ["--debug plan", "debug"])
@pytest.mark.parametrize("name", FAILURES)
def test_a_catalog_that_fails(
    name: str, command: str, echo: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    catalog = FAILURES[name].replace("URI", echo)
    settings = f"name: shop\ntargets:\n  there:\n    catalog: {{name: lake, {catalog}}}\n"
    lay_out(tmp_path, {"mvbuild.yml": settings, "models/a.sql": "SELECT * FROM raw.orders\n"})
    # Where there is no Java, nothing of Spark is looked at.
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    escaped = quote(SECRET, safe="")
    said = call(command, tmp_path, {"SECRET": SECRET, "ESCAPED": escaped}, monkeypatch, capsys)
    assert said.exit in (1, 2), said
    # Each part of it counts: a message may have torn it to pieces.
    assert "canary" not in said.stdout + said.stderr
    assert "Traceback" not in said.stderr
    assert leaks(below(tmp_path), ["canary"]) == []


@pytest.mark.parametrize("remote", ["sc://127.0.0.1:9/;token=canary-1", "sc://lake:canary-2@127.0.0.1:9", "sc://127.0.0.1:9;canary-3"])
def test_spark_connect_that_fails(remote: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    settings = "name: shop\ntargets: {there: {spark: {remote: \"{{ env_var('REMOTE') }}\"}}}\n"
    lay_out(tmp_path, {"mvbuild.yml": settings, "models/a.sql": "SELECT 1 AS a\n"})
    said = call("debug", tmp_path, {"REMOTE": remote}, monkeypatch, capsys)
    assert said.exit == 1
    assert "cannot be reached" in said.stdout
    assert "canary" not in said.stdout + said.stderr


def test_a_failure_that_nobody_foresaw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    secrets = {"LAKE_PASSWORD": "canary-1-word", "LAKE_URI": "postgresql://lake:canary%2F2@h/d", "LOGIN_TOKEN": "shop:canary-3-word"}
    said = "canary-1-word, canary/2, shop, canary-3-word, http://a:canary-4@h/x, password=canary-5"

    def fail(*_: object, **__: object) -> None:
        try:
            raise ValueError(said)
        except ValueError as error:
            raise RuntimeError(f"of {said}") from error

    lay_out(tmp_path, {"models/a.sql": "SELECT 1 AS a\n"})
    monkeypatch.setattr("mvbuild.api.plan", fail)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    outcome = call("--debug plan", tmp_path, secrets, monkeypatch, capsys)
    assert "Traceback" in outcome.stderr
    (written,) = tmp_path.glob("mvbuild-*.log")
    assert "RuntimeError" in written.read_text(encoding="utf-8")
    assert "canary" not in outcome.stdout + outcome.stderr + written.read_text(encoding="utf-8")


def test_a_graph_that_a_notebook_shows(tmp_path: Path) -> None:
    secret = "\"{{ env_var('SECRET') }}\""
    settings = (
        f"name: shop\ntargets: {{there: {{catalog: {{type: rest, uri: 'http://h', token: {secret}}}, spark: {{remote: {secret}}}}}}}\n"
    )
    source = f"sources: [{{name: a, catalog: b, properties: {{type: rest, token: {secret}}}, tables: [{{name: c}}]}}]\n"
    lay_out(tmp_path, {"mvbuild.yml": settings, "models/a.sql": "SELECT * FROM {{ source('a', 'c') }}\n", "models/s.yml": source})
    graph = api.compile(tmp_path, env={"SECRET": "canary"})
    assert graph.project.target.catalog["token"] == "canary"
    assert "canary" not in repr(graph)
