"""`scalor view`: look at a result folder in the browser, and correct its tracks there."""

import argparse
import contextlib
import socket
import sys
import webbrowser
from typing import TYPE_CHECKING

from scalor.cli.edit import films_note
from scalor.cli.parser import Commands, command
from scalor.cli.values import natural
from scalor.errors import InputError
from scalor.files import Stopped

if TYPE_CHECKING:
    from scalor.server.session import Session

PORT = 8642


def add_view(commands: Commands) -> None:
    """Add the command."""
    view = command(commands, "view", "Look at tracks in the browser, and correct them there; every edit can be undone.")
    view.add_argument("folder", help="folder that `scalor track` wrote")
    view.add_argument(
        "--port", type=natural, default=PORT, help="port on this machine; 0, or a port in use: any free one"
    )
    view.add_argument("--open", action="store_true", help="open the page in the browser of this machine")


def run(arguments: argparse.Namespace, _: list[str]) -> int:
    """Show the result folder in the browser."""
    try:
        import uvicorn
    except ImportError as error:
        raise InputError("scalor view needs the package uvicorn: run pip install 'scalor[view]'.") from error
    from scalor.cli.text import print_result
    from scalor.server.app import HOST, build, new_token
    from scalor.server.session import Session

    session = Session(arguments.folder)
    token = new_token()
    application = build(session, token)
    with listen(HOST, arguments.port) as listener:
        port = listener.getsockname()[1]
        address = f"http://{HOST}:{port}/{token}/"
        lines = [
            f"open {address}",
            f"from another machine: ssh -L {port}:{HOST}:{port} to this one, then open the same address there",
            "control-C ends",
        ]
        print_result({"address": address}, arguments.json, "\n".join(lines))
        sys.stdout.flush()
        if arguments.open:
            webbrowser.open(address)
        server = uvicorn.Server(uvicorn.Config(application, log_level="warning", lifespan="off", access_log=False))
        try:
            with contextlib.suppress(KeyboardInterrupt, Stopped):
                server.run([listener])
        finally:
            session.close()
    if session.problem:
        raise InputError(f"the edits are in the log, but the files could not be made anew: {session.problem}")
    if session.version and not arguments.json:
        print(farewell(session))
    return 0


def farewell(session: "Session") -> str:
    """Return what is said at the end of a session with edits."""
    return f"the files of {session.path} follow the edits{films_note(session.folder)}"


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on this port, or on any free one if it is in use."""
    for wanted in (port, 0):
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, wanted))
        except (OSError, OverflowError):
            listener.close()
            continue
        listener.listen()
        return listener
    raise InputError(f"port {port} of {host} cannot be used: choose another with --port.")
