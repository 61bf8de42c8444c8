"""Firefox as the system has it, driven by its own protocol, Marionette: Playwright drives a Firefox of its own only."""

import json
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

BROWSERS = ("firefox", "firefox-esr")
PREFERENCES = {
    "app.update.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "toolkit.telemetry.reportingpolicy.firstRun": False,
}


def find_firefox() -> str | None:
    """Path of Firefox, if it is installed."""
    return next((path for path in map(shutil.which, BROWSERS) if path), None)


class Firefox:
    """A page in Firefox without a window. A message is its length, a colon, and JSON."""

    def __init__(self, binary: str, profile: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        preferences = PREFERENCES | {"marionette.port": port}
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in preferences.items()]
        (profile / "user.js").write_text("\n".join(lines))
        command = [binary, "--headless", "--marionette", "--no-remote", "--profile", str(profile)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.socket = self._connected(port)
        self._answer()
        self.number = 0
        self.ask("WebDriver:NewSession", capabilities={})

    def _connected(self, port: int) -> socket.socket:
        end = time.monotonic() + 60
        while True:
            try:
                return socket.create_connection(("127.0.0.1", port), timeout=60)
            except OSError:
                if time.monotonic() > end or self.process.poll() is not None:
                    raise
                time.sleep(0.1)

    def _answer(self) -> Any:
        length = b""
        while (byte := self.socket.recv(1)) != b":":
            length += byte
        answer = b""
        while len(answer) < int(length):
            answer += self.socket.recv(int(length) - len(answer))
        return json.loads(answer)

    def ask(self, command: str, **parameters: Any) -> Any:
        """Send a command; return its value."""
        self.number += 1
        message = json.dumps([0, self.number, command, parameters]).encode()
        self.socket.sendall(f"{len(message)}:".encode() + message)
        _, _, error, value = self._answer()
        assert error is None, error
        return value

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression in the page."""
        return self.ask("WebDriver:ExecuteScript", script=f"return {expression}", args=[])["value"]

    def wait(self, condition: str) -> None:
        end = time.monotonic() + 30
        while not self.evaluate(f"(({{page, drawn}}) => {condition})(scalor)"):
            assert time.monotonic() < end, condition
            time.sleep(0.05)

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=30)
        self.socket.close()
