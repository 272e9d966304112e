"""Errors in the language server: sentences for the client and on stderr, and never a traceback."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from mvbuild.lsp.failures import Server, log_sentences
from unit.lsp.client import serving
from unit.worlds import write_project

FILES = {"mvbuild.yml": "name: shop\n", "models/a.sql": "SELECT 1 AS x\n", "models/b.sql": "SELECT x FROM {{ ref('a') }}\n"}


def test_requests_that_cannot_be_answered(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    root = write_project(tmp_path, FILES)
    with serving(folders=(root,), freshness=False) as client:
        uri = client.open(root / "models/b.sql")
        client.codes(uri)
        (root / "models/latin.sql").write_bytes(b"SELECT 1 AS \xe9")
        for name in ("gone.sql", "latin.sql"):
            missing = (root / "models" / name).as_uri()
            assert client.at("hover", missing, 0, 1) is None
            assert client.at("completion", missing, 0, 1)["items"] == []
            assert client.ask("textDocument/documentSymbol", {"textDocument": {"uri": missing}}) == []
        place = {"textDocument": {"uri": uri}, "position": {"line": 0, "character": 23}}
        assert client.refused("textDocument/rename", {**place, "newName": "b"}) == "The project has a model or seed 'b' already."
    assert capfd.readouterr().err == ""


def test_an_unexpected_error_is_one_sentence() -> None:
    server = Server("mvbuild", "1", lambda exc: f"{type(exc).__name__}; details are in a file")

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(params: types.HoverParams) -> None:
        raise ValueError(params)

    with pytest.raises(JsonRpcException) as caught:
        server.protocol.fm.features[types.TEXT_DOCUMENT_HOVER](None)
    answer = caught.value.to_response_error()
    assert (answer.message, answer.data) == ("ValueError; details are in a file", None)


def test_the_log_has_no_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("pygls")
    before = logger.handlers[:], logger.propagate
    log_sentences()
    try:
        try:
            json.loads("{")
        except ValueError:
            logging.getLogger("pygls.protocol").exception("Cannot read a message")
    finally:
        logger.handlers[:], logger.propagate = before
    printed = capsys.readouterr().err
    assert printed.startswith("Cannot read a message\nExpecting property name")
    assert "Traceback" not in printed
