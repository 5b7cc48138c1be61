"""One process of the service: the HTTP server, its signals, and an orderly end.

Promises: SIGTERM or Ctrl-C stops accepting, refuses the requests that wait for a lock, finishes those that hold one
within `DRAIN_S`, and releases all locks. A second signal ends at once; locks are released then, too.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import signal
import socket
from collections.abc import Callable, Generator
from types import FrameType
from typing import Final

import uvicorn

from pybench.errors import InputError
from pybench.running.interrupts import SIGNALS
from pybench.service.app import Service
from pybench.service.logs import Forward, Log
from pybench.service.protocol import BoundedProtocol
from pybench.service.settings import Settings

DRAIN_S: Final = 10
"""Time for the requests that hold a lock when the service is told to end."""
BACKLOG: Final = 2_048
KEEP_ALIVE_S: Final = 30


class _Server(uvicorn.Server):
    """Ends as this module promises."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """The handlers of this process are set by `serve`, before its servers are asked."""
        yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal drains, the second ends at once."""
        if self.should_exit:
            self.force_exit = True
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Refuse what waits, then finish what runs."""
        self._service.stop_waiting()
        await super().shutdown(sockets)


NewService = Callable[[Settings, Log], Service]


def serve(
    settings: Settings, listening: socket.socket, on_ready: Callable[[], None], new_service: NewService = Service
) -> bool:
    """Serve until a signal; whether the end was orderly.

    `on_ready` is called when all servers have answered and requests are taken. Raises ServerError when a server does
    not answer at the start, InputError when the port was taken meanwhile.
    """
    log = Log(settings.log_level)
    config = uvicorn.Config(
        app=_not_yet,
        http=BoundedProtocol,
        loop="uvloop",
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=DRAIN_S,
        server_header=False,
        proxy_headers=False,
    )
    loggers = [logging.getLogger(name) for name in ("uvicorn", "asyncio")]
    forward = Forward(log)
    for logger in loggers:
        logger.addHandler(forward)
        logger.setLevel(logging.DEBUG if log.takes("debug") else logging.WARNING)
        logger.propagate = False
    try:
        with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
            return runner.run(_serve(new_service(settings, log), config, listening, on_ready))
    finally:
        for logger in loggers:
            logger.removeHandler(forward)
        log.flush()


async def _serve(
    service: Service, config: uvicorn.Config, listening: socket.socket, on_ready: Callable[[], None]
) -> bool:
    server = _Server(config, service)
    loop = asyncio.get_running_loop()
    taken = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.getsignal(number) for number in taken}
    for number in taken:
        loop.add_signal_handler(number, server.handle_exit, number, None)
    try:
        config.app = await service.open()
        config.load()
        _listen(listening)
        # What is there now stays: the collector need not look through it again and again.
        gc.collect()
        gc.freeze()
        ready = asyncio.create_task(_when_started(server, on_ready))
        await server.serve(sockets=[listening])
        ready.cancel()
    finally:
        await service.close()
        for number in taken:
            loop.remove_signal_handler(number)
            signal.signal(number, before[number])
    return not server.force_exit


def _listen(bound: socket.socket) -> None:
    """Take connections. Raises InputError: a port that is bound is not taken before somebody listens."""
    try:
        bound.listen(BACKLOG)
    except OSError as error:
        host, port, *_ = bound.getsockname()
        hint = "give another --port; 0 takes a free one"
        raise InputError(f"{host}:{port} cannot be listened on: {error.strerror or error}", hint=hint) from None


async def _when_started(server: _Server, on_ready: Callable[[], None]) -> None:
    while not server.started:
        await asyncio.sleep(0.001)
    on_ready()


async def _not_yet(_scope: object, _receive: object, _send: object) -> None:
    raise AssertionError("the application is set before the server starts")
