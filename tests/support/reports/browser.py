"""One headless Chromium for many pages, spoken to over a pipe (Chrome DevTools Protocol)."""

import base64
import fcntl
import itertools
import json
import os
import select
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--host-resolver-rules=MAP * ~NOTFOUND",
    "--remote-debugging-pipe",
)  # fmt: skip
LISTEN = """window.problems = [];
addEventListener("error", (event) => problems.push(String(event.message || event.target.outerHTML)), true);
for (const level of ["error", "warn"]) console[level] = (...words) => problems.push(words.join(" "));
window.wait = (check) => new Promise((done) => {
  const timer = setInterval(() => { if (check()) { clearInterval(timer); done(); } }, 20);
  setTimeout(done, 100000);
});"""
"""What a page's scripts may use: `problems`, and `wait` for a condition."""
STILL = "window.IntersectionObserver = class { observe() {} unobserve() {} };"
"""No chart comes into sight, so that none is drawn anew."""
PATIENCE = 300


class Browser:
    """A process of Chromium; `page` opens a file in it."""

    def __init__(self, profile: Path) -> None:
        self._numbers = itertools.count(1)
        self._unread, self._events = b"", list[dict[str, Any]]()
        commands, self._write = os.pipe()
        self._read, answers = os.pipe()
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (commands, answers)]
        command = f'exec "$@" 3<&{ends[0]} 4>&{ends[1]}'
        self._process = subprocess.Popen(
            ["bash", "-c", command, "bash", str(CHROMIUM), *FLAGS, f"--user-data-dir={profile}"],
            pass_fds=ends,
            stderr=subprocess.DEVNULL,
        )
        for end in (commands, answers, *ends):
            os.close(end)

    def call(self, method: str, session: str = "", **parameters: Any) -> dict[str, Any]:
        """The answer to a command."""
        number = next(self._numbers)
        sent = {"id": number, "method": method, "params": parameters} | ({"sessionId": session} if session else {})
        os.write(self._write, json.dumps(sent).encode() + b"\0")
        while (said := self._said()).get("id") != number:
            self._events.append(said)
        assert "result" in said, said
        return said["result"]

    def wait_for(self, event: str, session: str) -> None:
        """Wait until a session has reported an event, which may have come before an answer."""
        while not any(said["method"] == event and said.get("sessionId") == session for said in self._events):
            self._events.append(self._said())
        self._events.clear()

    def _said(self) -> dict[str, Any]:
        while b"\0" not in self._unread:
            assert select.select([self._read], [], [], PATIENCE)[0], f"the browser said nothing for {PATIENCE} s"
            part = os.read(self._read, 1 << 20)
            assert part, "the browser has ended"
            self._unread += part
        message, _, self._unread = self._unread.partition(b"\0")
        return json.loads(message)

    @contextmanager
    def page(
        self, file: Path, width: int, height: int = 900, *, dark: bool = False, still: bool = False
    ) -> Iterator["Page"]:
        """A file in a window of this size, loaded; `still`: with the figures of the file alone."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", session, **size)
        self.call("Emulation.setEmulatedMedia", session, features=scheme)
        self.call("Page.enable", session)
        self.call("Page.addScriptToEvaluateOnNewDocument", session, source=LISTEN + (STILL if still else ""))
        self.call("Page.navigate", session, url=file.as_uri())
        self.wait_for("Page.loadEventFired", session)
        yield Page(self, session)
        self.call("Target.closeTarget", targetId=target)

    def close(self) -> None:
        self.call("Browser.close")
        self._process.wait(PATIENCE)
        os.close(self._write)
        os.close(self._read)


@dataclass(frozen=True)
class Page:
    """A page that is open in a browser."""

    browser: Browser
    session: str

    def value(self, script: str) -> Any:
        """What a script yields, or the promise that it yields."""
        asked = {"expression": script, "awaitPromise": True, "returnByValue": True}
        found = self.browser.call("Runtime.evaluate", self.session, **asked)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def printed(self) -> bytes:
        return base64.b64decode(self.browser.call("Page.printToPDF", self.session)["data"])
