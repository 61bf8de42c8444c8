"""The server of `scalor view`: its addresses, and how it runs."""

import json
from collections.abc import Callable
from html import escape
from pathlib import Path
from secrets import token_urlsafe
from typing import Any

from scalor.errors import InputError
from scalor.measures import drawings
from scalor.outputs.html_report import STYLE
from scalor.server.guard import App, Guard
from scalor.server.session import Session
from scalor.viewer import assembly

HOST = "127.0.0.1"
"""The server listens here only: other machines cannot reach it."""


def new_token() -> str:
    """Return a random token for the address of the page."""
    return token_urlsafe(24)


def page(session: Session) -> str:
    """Return the page."""
    folder = escape(session.path.resolve().name)
    name = escape(Path(session.folder.about.facts.get("video", "")).name) or folder
    lead = f"Folder {folder}. Every edit is saved at once, and can be undone."
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="data:,">'
        f"<title>{name}: tracks</title>\n<style>{STYLE}{assembly.style()}</style>\n</head>\n<body>\n<main>"
        f'<h1>Objects in {name}</h1>\n<p class="lead">{lead}</p>\n'
        f"{assembly.elements('server', '.')}</main>\n"
        f"<script>{assembly.program()}</script>\n</body>\n</html>\n"
    )


def build(session: Session, token: str) -> App:
    """Return the application for a session. Every address begins with the token."""
    try:
        from starlette.applications import Starlette
        from starlette.requests import Request
        from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response
        from starlette.routing import Route
    except ImportError as error:
        raise InputError("scalor view needs the package starlette: run pip install 'scalor[view]'.") from error

    def chunks(read: Callable[[int], Any]) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            document = read(request.path_params["number"])
            return Response("no such chunk", 404) if document is None else JSONResponse(document)

        return answer

    def film(request: Request) -> Response:
        try:
            return FileResponse(session.film, media_type="video/mp4")
        except InputError as error:
            return Response(str(error), 404)

    def saving(save: Callable[[Any], Any]) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            from starlette.concurrency import run_in_threadpool

            try:
                document = json.loads(await request.body())
                return JSONResponse(await run_in_threadpool(save, document))
            except InputError as error:
                return JSONResponse({"error": str(error)}, 400)
            except (ValueError, RecursionError):
                return JSONResponse({"error": "The request is no JSON."}, 400)

        return answer

    def save_regions(document: object) -> dict[str, Any]:
        drawings.save_regions(session.path, document)
        return drawings.read(session.path)

    def save_scale(document: object) -> dict[str, Any]:
        drawings.save_scale(session.path, document)
        return drawings.read(session.path)

    return Guard(
        Starlette(
            routes=[
                Route("/", lambda request: HTMLResponse(page(session))),
                Route("/video.mp4", film),
                Route("/data/index", lambda request: JSONResponse(session.index())),
                Route("/data/rows-{number:int}", chunks(session.rows)),
                Route("/data/masks-{number:int}", chunks(session.masks)),
                Route("/data/crossings", lambda request: JSONResponse(session.places("crossings"))),
                Route("/data/doubts", lambda request: JSONResponse(session.places("doubts"))),
                Route("/regions", saving(save_regions), methods=["POST"]),
                Route("/scale", saving(save_scale), methods=["POST"]),
                Route("/edit", saving(session.edit), methods=["POST"]),
            ],
            exception_handlers={InputError: lambda request, error: Response(str(error), 400)},
        ),
        token,
        assembly.policy("server"),
    )
