"""a process of `mvbuild lsp` -> its answers, over JSON-RPC as the protocol defines it, without pygls."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

COMPILER = Path(__file__).resolve().parents[3] / "compiler"
LIMIT = 240.0
"""Seconds for anything that is waited for: much more than it takes."""
Message = dict[str, Any]


class Client:
    """An editor."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._said: queue.Queue[Message | None] = queue.Queue()
        self._id = 0
        self.diagnostics: dict[str, list[Message]] = {}
        self.heard: list[Message] = []
        """Requests of the server."""
        self._versions: dict[str, int] = {}
        self._checked: dict[str, int | None] = {}
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        out = self._process.stdout
        assert out is not None
        while header := out.readline():
            length = int(header.split(b":")[1])
            while out.readline().strip():
                pass
            self._said.put(json.loads(out.read(length)))
        self._said.put(None)

    def _send(self, message: Message) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self._process.stdin.flush()

    def notify(self, method: str, params: Any = None) -> None:
        self._send({"method": method, "params": params if params is not None else {}})

    def ask(self, method: str, params: Any = None) -> Any:
        answer = self._answer(method, params)
        assert "error" not in answer, answer
        return answer["result"]

    def refused(self, method: str, params: Any = None) -> str:
        """Why a request failed."""
        return str(self._answer(method, params)["error"]["message"])

    def _answer(self, method: str, params: Any) -> Message:
        self._id += 1
        self._send({"id": self._id, "method": method, **({"params": params} if params is not None else {})})
        return self._wait(lambda m: m.get("id") == self._id and "method" not in m)

    def until(self, holds: Callable[[], bool]) -> None:
        """Listen until something is so."""
        if not holds():
            self._wait(lambda _: holds())

    def _wait(self, wanted: Callable[[Message], bool]) -> Message:
        end = time.monotonic() + LIMIT
        while True:
            message = self._said.get(timeout=max(0.01, end - time.monotonic()))
            assert message is not None, "the server is gone"
            if message.get("method") == "textDocument/publishDiagnostics":
                self.diagnostics[message["params"]["uri"]] = message["params"]["diagnostics"]
                self._checked[message["params"]["uri"]] = message["params"].get("version")
            elif "method" in message and "id" in message:
                self.heard.append(message)
                self._send({"id": message["id"], "result": None})
            if wanted(message):
                return message

    def until_logged(self, part: str) -> str:
        """What the server says of itself."""
        said = self._wait(lambda m: m.get("method") == "window/logMessage" and part in m["params"]["message"])
        return str(said["params"]["message"])

    def gone(self) -> bool:
        """Whether the server ends when its client is gone."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        return self._process.wait(LIMIT) is not None

    # --- documents

    def open(self, path: Path, text: str | None = None) -> str:
        uri = path.as_uri()
        self._versions[uri] = self._versions.get(uri, 0) + 100
        text = path.read_text(encoding="utf-8") if text is None else text
        self.notify(
            "textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": "sql", "version": self._versions[uri], "text": text}}
        )
        return uri

    def change(self, uri: str, *changes: Message) -> None:
        self._versions[uri] += 1
        self.notify(
            "textDocument/didChange",
            {"textDocument": {"uri": uri, "version": self._versions[uri]}, "contentChanges": list(changes)},
        )

    def close(self, uri: str) -> None:
        self.notify("textDocument/didClose", {"textDocument": {"uri": uri}})

    def codes(self, uri: str) -> list[str]:
        """Of the diagnostics of the version of a file that was sent last."""
        self.until(lambda: self._checked.get(uri) == self._versions[uri])
        return [d["code"] for d in self.diagnostics[uri]]

    def until_codes(self, uri: str, wanted: list[str]) -> None:
        self.until(lambda: uri in self.diagnostics and [d["code"] for d in self.diagnostics[uri]] == wanted)

    def at(self, method: str, uri: str, line: int, character: int) -> Any:
        return self.ask(f"textDocument/{method}", {"textDocument": {"uri": uri}, "position": {"line": line, "character": character}})


@contextmanager
def serving(
    *arguments: str, folders: tuple[Path, ...] = (), capabilities: Mapping[str, Any] | None = None, **options: Any
) -> Iterator[Client]:
    """From initialize to exit, which the process must follow."""
    environment = {**os.environ, "PYTHONPATH": str(COMPILER)}
    command = [sys.executable, "-W", "error::ResourceWarning", "-m", "mvbuild.cli.main", "lsp", *arguments]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
    try:
        client = Client(process)
        workspace = [{"uri": folder.as_uri(), "name": folder.name} for folder in folders]
        client.capabilities = client.ask(  # type: ignore[attr-defined]
            "initialize",
            {
                "processId": os.getpid(),
                "rootUri": folders[0].as_uri() if folders else None,
                "workspaceFolders": workspace,
                "capabilities": capabilities or {},
                "initializationOptions": options,
            },
        )["capabilities"]
        client.notify("initialized")
        yield client
        if process.poll() is not None:
            return
        client.ask("shutdown")
        client.notify("exit")
        assert process.wait(LIMIT) == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None and not pipe.closed:
                pipe.close()
