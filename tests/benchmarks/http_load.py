"""A load of HTTP requests in a closed loop, cheap enough not to be what is measured: raw sockets and one epoll.

As a program: `PORT CONNECTIONS SECONDS PID`, with the requests as JSON on stdin, `[method, path, body]` each. Prints
how many were answered, in which time, the CPU of process PID meanwhile, and the statuses.
"""

from __future__ import annotations

import json
import select
import socket
import sys
import time
from collections import Counter
from pathlib import Path

TICKS_PER_S = 100


def cpu_s(pid: int) -> float:
    """User and system time of a process; its children are not counted."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def request(method: str, path: str, body: str) -> bytes:
    """The bytes of one request."""
    head = f"{method} {path} HTTP/1.1\r\nhost: bench\r\ncontent-length: {len(body)}\r\n"
    return f"{head}content-type: application/json\r\n\r\n{body}".encode()


def load(port: int, connections: int, seconds: float, requests: list[bytes]) -> tuple[int, Counter[str]]:
    """Send the requests over and over, one at a time on each connection; how many were answered, and how."""
    poll, open_ = select.epoll(), {}
    statuses: Counter[str] = Counter()
    turn = done = 0
    for _ in range(connections):
        connection = socket.create_connection(("127.0.0.1", port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        open_[connection.fileno()] = connection
        poll.register(connection.fileno(), select.EPOLLIN)
        connection.sendall(requests[turn % len(requests)])
        turn += 1
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for number, _ in poll.poll(1.0):
            connection = open_[number]
            # Every answer of the service is small, and is written at once or in two parts.
            answer = connection.recv(65_536)
            head, _, body = answer.partition(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            while len(body) < length:
                body += connection.recv(65_536)
            statuses[answer[9:12].decode()] += 1
            done += 1
            connection.sendall(requests[turn % len(requests)])
            turn += 1
    for connection in open_.values():
        connection.close()
    return done, statuses


def main() -> None:
    """One load, in this process."""
    port, connections, seconds, pid = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
    requests = [request(*one) for one in json.load(sys.stdin)]
    load(port, connections, 0.1, requests)
    began, before = time.monotonic(), cpu_s(pid)
    done, statuses = load(port, connections, seconds, requests)
    took, used = time.monotonic() - began, cpu_s(pid) - before
    print(json.dumps({"done": done, "took_s": took, "cpu_s": used, "statuses": statuses}))


if __name__ == "__main__":
    main()
