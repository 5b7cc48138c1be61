"""The front of the service: every request passes here, and leaves with an id, a line in the log and its figures.

The routes that load generators drive are handled here, by plain functions, because a framework's routing and
validation cost more than a lock. All others go to the application behind.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import Awaitable, Callable
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from pybench.service.answers import Answer, Header, Problem, busy
from pybench.service.calls import Call, Cut, Message, Receive, Scope, Send, problem_of
from pybench.service.hang_ups import HangUps

if TYPE_CHECKING:
    from pybench.service.figures import Figures
    from pybench.service.logs import Log
    from pybench.service.settings import Settings

Handler = Callable[[Call], Awaitable[Answer]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

HUNG_UP: Final = 499
"""The status in log and figures of a request whose client hung up: nobody gets it."""
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:-]{1,128}")


class Route:
    """A path, or the paths with so many parts below it, that handlers answer by the method of the request."""

    __slots__ = ("allow", "handlers", "name", "parts")

    def __init__(self, name: str, **handlers: Handler) -> None:
        """`name` is the route in log and figures, with braces around the parts that are not fixed."""
        self.name = name
        self.parts = name.count("{")
        self.handlers = handlers
        self.allow = ", ".join(handlers)


class Front:
    """An ASGI application."""

    def __init__(
        self, settings: Settings, routes: dict[str, Route], behind: Application, figures: Figures, log: Log
    ) -> None:
        """Of `routes`, one whose path ends in a slash has all paths below it."""
        self._settings = settings
        self._exact = {path: route for path, route in routes.items() if not path.endswith("/")}
        self._below = [(path, route) for path, route in routes.items() if path.endswith("/")]
        self._behind = behind
        self._figures = figures
        self._log = log
        self._logs_requests = log.takes("info")
        self._first = secrets.token_hex(4)
        self._numbers = count(1)
        self._running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._behind(scope, receive, send)
            return
        began = time.perf_counter()
        call = Call(scope, receive)
        given = call.given_id
        is_sane = given is not None and _REQUEST_ID.fullmatch(given)
        call.id = given.decode() if given is not None and is_sane else f"{self._first}-{next(self._numbers):x}"
        route = self._exact.get(call.path) or self._route_above(call)
        if route is None:
            status = await self._pass_on(call, send)
        else:
            call.route = route.name
            answer = await self._answer(call, route)
            status = HUNG_UP if answer is None else answer.status
            if answer is not None:
                await _respond(call, answer, send)
        seconds = time.perf_counter() - began
        self._figures.answered(call.route, status, seconds)
        if self._logs_requests:
            self._log_request(call, status, seconds)

    def _route_above(self, call: Call) -> Route | None:
        for start, route in self._below:
            if call.path.startswith(start):
                parts = call.raw_path[len(start) :].split(b"/")
                return route if len(parts) == route.parts and all(parts) else None
        return None

    async def _answer(self, call: Call, route: Route) -> Answer | None:
        """The answer; None for a client that has hung up."""
        handler = route.handlers.get(call.method)
        if handler is None:
            answer = Problem(405, "Method not allowed").answer()
            answer.headers = ((b"allow", route.allow.encode()),)
            return answer
        if self._running >= self._settings.most_waiting:
            return busy(f"{self._running} requests are under way already").answer()
        self._running += 1
        hang_ups = HangUps(call)
        try:
            return await handler(call)
        except Problem as problem:
            return problem.answer()
        except asyncio.CancelledError:
            if call.task is not None:
                call.task.uncancel()
            # Whoever cancels without a reason is the HTTP server, which has waited long enough for the end.
            cut = call.cut or Cut.STOPPING
            return None if cut is Cut.HUNG_UP else problem_of(cut).answer()
        except Exception as error:
            self._log.failure(call.id, error)
            return Problem(
                500, "Internal error", "the log of the service has the traceback, under this request's id"
            ).answer()
        finally:
            self._running -= 1
            hang_ups.stop()

    async def _pass_on(self, call: Call, send: Send) -> int:
        """Have the application behind answer; its status."""
        status = 0

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", call.id.encode())]
            await send(message)

        await self._behind(call.scope, call.receive, sending)
        route: Any = call.scope.get("route")
        call.route = getattr(route, "path", "other") if status != 404 else "other"
        return status

    def _log_request(self, call: Call, status: int, seconds: float) -> None:
        more: dict[str, str] = {}
        if call.strategy is not None:
            more["strategy"] = call.strategy
        if call.resource is not None:
            more["resource"] = call.resource
        if call.cut is not None:
            more["cut"] = call.cut.name.lower()
        self._log.write(
            "info",
            "request",
            request_id=call.id,
            method=call.method,
            route=call.route,
            status=status,
            duration_ms=round(seconds * 1_000, 3),
            **more,
        )


async def _respond(call: Call, answer: Answer, send: Send) -> None:
    headers: list[Header] = [
        answer.type,
        (b"content-length", b"%d" % len(answer.body)),
        (b"x-request-id", call.id.encode()),
        *answer.headers,
    ]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})
