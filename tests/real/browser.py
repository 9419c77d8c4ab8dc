"""A real Chromium, driven over its own protocol on a pipe: no port, no driver, nothing installed for it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

BROWSER = shutil.which("chromium") or shutil.which("google-chrome") or ""


class NavigatedError(Exception):
    """The page went elsewhere while a script ran in it."""


class Tab:
    """One page of the browser."""

    def __init__(self, asking: int, answers: int) -> None:
        self._asking, self._answers = asking, os.fdopen(answers, "rb")
        self._number, self._read, self._session = 0, b"", ""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """One command and its result."""
        self._number += 1
        asked = {"id": self._number, "method": method, "params": params}
        asked |= {"sessionId": self._session} if self._session else {}
        os.write(self._asking, json.dumps(asked).encode() + b"\0")
        while True:
            while b"\0" not in self._read:
                more = os.read(self._answers.fileno(), 1 << 16)
                assert more, "the browser has ended"
                self._read += more
            answer, _, self._read = self._read.partition(b"\0")
            said = json.loads(answer)
            if said.get("id") == self._number:
                if "navigated" in str(said.get("error")):
                    raise NavigatedError
                assert "error" not in said, said
                result: dict[str, Any] = said["result"]
                return result

    def run(self, script: str) -> Any:
        """What a script in the page says."""
        return self.call("Runtime.evaluate", expression=script, awaitPromise=True)["result"].get("value")

    def until(self, script: str) -> None:
        """Wait in the page until a condition is true, through its navigations."""
        while True:
            with suppress(NavigatedError):
                if self.run(script):
                    return
                self.run("new Promise(done => setTimeout(done, 50))")


@contextmanager
def browsing(folder: Path) -> Iterator[Tab]:
    """A browser with a profile in `folder`."""
    theirs, asking = os.pipe()
    answers, ours = os.pipe()

    def connect() -> None:  # the protocol's pipes are the descriptors 3 and 4
        low, high = os.dup(theirs), os.dup(ours)
        os.dup2(low, 3)
        os.dup2(high, 4)

    command = [BROWSER, "--headless", "--no-sandbox", "--remote-debugging-pipe", f"--user-data-dir={folder}"]
    with subprocess.Popen(command, pass_fds=(3, 4, theirs, ours), preexec_fn=connect, stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:  # fmt: skip  # one call
        os.close(theirs), os.close(ours)
        try:
            yield Tab(asking, answers)
        finally:
            process.terminate()
            os.close(asking)
