"""`Guard`: which requests the server answers.

Any page that a browser has open can send requests to servers on the same machine. A request is answered only if it
knows the token of this run, names this machine as its host (a name that an attacker points at this machine is another
host), and, if it changes anything, comes from the page itself.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from secrets import compare_digest
from typing import Any
from urllib.parse import urlsplit

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

HOSTS = ("127.0.0.1", "localhost", "::1")
"""Names of this machine. Any port is allowed, because `ssh -L` may change it."""
LARGEST_BODY = 1_000_000
"""Largest request in bytes."""


class Guard:
    """An application behind a token: the first part of every path."""

    def __init__(self, app: App, token: str, policy: str) -> None:
        self.app = app
        self.token = token
        self.headers = [
            (b"content-security-policy", f"{policy}; frame-ancestors 'none'".encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"referrer-policy", b"no-referrer"),
            (b"cross-origin-resource-policy", b"same-origin"),
            (b"cache-control", b"no-store"),
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it before the application sees it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        refused = self._refusal(scope["method"], headers)
        first, _, rest = scope["path"].lstrip("/").partition("/")
        if refused is None and not compare_digest(first.encode(), self.token.encode()):
            refused = (404, b"not found")
        if refused is not None:
            status, text = refused
            await send({"type": "http.response.start", "status": status, "headers": self.headers})
            await send({"type": "http.response.body", "body": text})
            return
        path = f"/{rest}"
        await self.app({**scope, "path": path, "raw_path": path.encode()}, receive, self._with_headers(send))

    def _refusal(self, method: str, headers: dict[str, str]) -> tuple[int, bytes] | None:
        """Return the status and text of the answer to a request that is refused, or None."""
        if _host(f"//{headers.get('host', '')}") not in HOSTS:
            return 403, b"unknown host"
        if "origin" in headers and _host(headers["origin"]) not in HOSTS:
            return 403, b"request from another page"
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return 403, b"request from another page"
        if method == "POST" and headers.get("content-type", "").split(";")[0] != "application/json":
            return 415, b"send JSON"
        if method == "POST" and not headers.get("content-length", "").isdigit():
            return 411, b"no length"
        if method == "POST" and int(headers["content-length"]) > LARGEST_BODY:
            return 413, b"too large"
        return None

    def _with_headers(self, send: Send) -> Send:
        async def more(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *self.headers]
            await send(message)

        return more


def _host(address: str) -> str | None:
    """Return the host in an address, or None if there is none."""
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None
