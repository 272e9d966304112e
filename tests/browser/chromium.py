"""Chromium without a window -> pages that a test drives: it is spoken to over pipes, so nothing but Chromium has to be installed."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
PATIENCE = 15.0
"""Seconds after which what did not happen is a failure."""

_START = "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execv(sys.argv[3], sys.argv[3:])"


def find_chromium() -> str | None:
    """MVBUILD_CHROMIUM, or what is on the PATH."""
    return os.environ.get("MVBUILD_CHROMIUM") or next((found for name in NAMES if (found := shutil.which(name))), None)


@contextmanager
def browser(executable: str, profile: Path) -> Iterator[Browser]:
    """Reads commands from file descriptor 3 and writes answers to 4."""
    there, answers = os.pipe(), os.pipe()
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run", "--disable-background-networking"]
    line = [sys.executable, "-c", _START, str(there[0]), str(answers[1]), executable, *flags, f"--user-data-dir={profile}"]
    process = subprocess.Popen(line, pass_fds=(there[0], answers[1]), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    os.close(there[0])
    os.close(answers[1])
    made = Browser(there[1], answers[0])
    try:
        yield made
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE)
        os.close(there[1])
        os.close(answers[0])


class Browser:
    """Messages to Chromium and back."""

    def __init__(self, send: int, receive: int) -> None:
        self._send, self._receive = send, receive
        self._rest, self._number = b"", 0
        self.pages: dict[str, Page] = {}

    def call(self, method: str, parameters: Mapping[str, Any] | None = None, session: str | None = None) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters or {}} | ({"sessionId": session} if session else {})
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._send, data) :]
        mine = self._number
        while True:
            answer = self._next()
            if answer.get("id") == mine:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]

    def page(self, width: int = 1280, height: int = 900, *, scheme: str = "light", touch: bool = False) -> Page:
        target = self.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        page = self.pages[session] = Page(self, session)
        for domain in ("Page", "Runtime", "Network", "Log"):
            page.call(f"{domain}.enable")
        page.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=touch)
        page.scheme(scheme)
        return page

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            data = os.read(self._receive, 1 << 20)
            assert data, "Chromium has ended"
            self._rest += data
        one, _, self._rest = self._rest.partition(b"\0")
        message = json.loads(one)
        if message.get("sessionId") in self.pages and "method" in message:
            self.pages[message["sessionId"]].heard(message["method"], message["params"])
        return message


class Page:
    """A tab. `problems` has every error of the console, `requests` every address that was asked for."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser, self._session = browser, session
        self.problems: list[str] = []
        self.requests: list[str] = []

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.call(method, parameters, self._session)

    def heard(self, method: str, content: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            self.requests.append(content["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(content["exceptionDetails"]))
        elif method == "Log.entryAdded" and content["entry"]["level"] in ("error", "warning"):
            self.problems.append(json.dumps(content["entry"]))
        elif method == "Runtime.consoleAPICalled" and content["type"] in ("error", "warning", "assert"):
            self.problems.append(json.dumps(content["args"]))

    def scheme(self, name: str) -> None:
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def open(self, url: str) -> None:
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete' && document.querySelector('main')?.children.length > 0")

    def go(self, address: str) -> None:
        """To an address after #."""
        self.js(f"location.hash = {json.dumps(address)}")
        self.settle()

    def settle(self) -> None:
        """Until scripts that were asked for are there and everything is drawn."""
        self.js("new Promise((done) => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(done)), 60))")

    def js(self, expression: str) -> Any:
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def until(self, expression: str) -> None:
        end = time.monotonic() + PATIENCE
        while not self.js(f"Boolean({expression})"):
            assert time.monotonic() < end, f"never came true: {expression}; {self.problems}"
            self.js("new Promise((done) => setTimeout(done, 20))")

    def text(self, selector: str) -> str:
        return self.js(f"document.querySelector({json.dumps(selector)})?.textContent ?? ''")

    def texts(self, selector: str) -> list[str]:
        return self.js(f"[...document.querySelectorAll({json.dumps(selector)})].map((one) => one.textContent)")

    def click(self, selector: str, containing: str = "") -> None:
        """With the mouse, in the middle of the first one that has the text."""
        place = self.js(
            f"""(() => {{
              const one = [...document.querySelectorAll({json.dumps(selector)})].find((e) => e.textContent.includes({json.dumps(containing)}));
              if (!one) return null;
              one.scrollIntoView({{ block: "center", inline: "center" }});
              const box = one.getBoundingClientRect();
              return [box.x + box.width / 2, box.y + box.height / 2];
            }})()"""
        )
        assert place is not None, f"nothing to click: {selector} {containing}"
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], button="left", clickCount=1)
        self.settle()

    def key(self, key: str, text: str = "") -> None:
        codes = {"Enter": 13, "ArrowDown": 40, "ArrowUp": 38, "ArrowLeft": 37, "ArrowRight": 39, "Tab": 9, "Escape": 27, "/": 191, "+": 187}
        more = {"text": text} if text else {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=codes.get(key, 0), **more)
            more = {}
        self.settle()

    def type(self, text: str) -> None:
        self.call("Input.insertText", text=text)
        self.settle()

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        found = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(found["data"]))
