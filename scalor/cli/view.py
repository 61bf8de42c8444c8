"""`scalor view`: look at a result folder in the browser, and correct its tracks there."""

import argparse
import signal
import socket
import sys
import webbrowser
from typing import TYPE_CHECKING

from scalor.cli.edit import draw_films, films_note
from scalor.cli.parser import Commands, command
from scalor.cli.values import natural
from scalor.errors import InputError
from scalor.files import Stopped

if TYPE_CHECKING:
    from scalor.edits import EditedFolder

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
        by_hand = True
        try:
            server.run([listener])
        except KeyboardInterrupt:
            pass
        except Stopped as stopped:
            by_hand = stopped.number == signal.SIGINT
        finally:
            session.close()
    if session.problem:
        raise InputError(f"the edits are in the log, but the files could not be made again: {session.problem}")
    if session.version:
        problem = draw_films_again(session.folder) if by_hand else ""
        if not arguments.json:
            print(f"the files of {session.path} follow the edits{problem}{films_note(session.folder)}")
    return 0


def draw_films_again(folder: "EditedFolder") -> str:
    """Draw the films again if they lag behind the edits, until control-C; return a line that says why it failed."""
    films = " and ".join(folder.stale_films)
    if not films:
        return ""
    print(f"drawing {films} with the edits; control-C leaves them as before", file=sys.stderr)
    try:
        draw_films(folder)
    except (KeyboardInterrupt, Stopped):
        pass
    except (InputError, OSError) as error:
        return f"\n{error}"
    return ""


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
