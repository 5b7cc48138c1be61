"""The keeper: a small process between pybench and a server it started. Run as a script, standard library only.

Promises: when pybench closes the pipe on standard input, or dies in any way, the server is ended and its folder
removed. When the keeper itself is killed, the kernel ends the server.

A parent-death signal set by pybench itself would not do: it fires when the *thread* that started the server ends,
and code between fork and exec is unsafe beside other threads. The keeper has one thread, so both are sound here.

The keeper becomes the parent of the processes that a killed server leaves, and ends them, too.

Arguments: folder, open files wanted, the cores to keep to (`0,1`; `all` for no such bound), the user to run the server
as (`UID:GID`; `same` for one's own), the signals that end it one after another (`INT,QUIT`; SIGKILL is the last),
inherited file descriptor of the folder's lock, command of the server.
Prints `pid N`, and `exit N` when the server ends by itself. A line `start` on standard input starts a server that has
ended again, and prints its new `pid N`.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import select
import shutil
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE_S = 1.0
"""Time for the server to end after each signal."""

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
IPC_RMID = 0
OWNER = 0

START = b"start\n"
"""What the owner sends to start a server again that has ended."""

POSTGRES_DATA = "data"
"""The data folder of a Postgres, in the folder of its server."""


def main(arguments: list[str]) -> None:
    """Start the server, wait for the owner's end, end the server, remove the folder."""
    folder, files, cores, user, endings, lock, *command = arguments
    os.set_inheritable(int(lock), False)  # noqa: FBT003 - positional only
    os.chdir(folder)
    signals = _catch_signals()
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    server = _wait_for_the_end(lambda: _launch(command, int(files), cores, user), signals)
    if server:
        _end(server, [signal.Signals[f"SIG{name}"] for name in endings.split(",")])
    _end_orphans()
    remove_shared_memory(folder)
    shutil.rmtree(folder, ignore_errors=True)


def _catch_signals() -> int:
    """A file descriptor on which each signal appears as one byte."""
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda _number, _frame: None)
    return read_end


def _launch(command: list[str], files: int, cores: str, user: str) -> int:
    prctl = ctypes.CDLL(None).prctl
    keeper = os.getpid()
    child = os.fork()
    if child:
        return child
    try:
        # An ignored signal stays ignored over exec, and Python ignores these two.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        _raise_file_limit(files)
        if cores != "all":
            with contextlib.suppress(OSError):  # Somebody took them away since they were looked up.
                os.sched_setaffinity(0, [int(core) for core in cores.split(",")])
        log = os.open("server.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((nothing, 0), (log, 1), (log, 2)):
            os.dup2(source, target)
        if user != "same":
            _become(*(int(number) for number in user.split(":")))
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)  # After the change of the user, which would undo it.
        if os.getppid() != keeper:  # It died before the call above, which then had nobody to watch.
            os._exit(1)
        os.execv(command[0], command)
    except OSError as error:
        os.write(2, f"{command[0]}: {error}\n".encode())
    finally:
        os._exit(127)


def _become(user: int, group: int) -> None:
    os.setgroups([])
    os.setgid(group)
    os.setuid(user)
    os.umask(0o077)


def _raise_file_limit(files: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    if soft == unlimited or soft >= files:
        return
    if hard != unlimited and hard < files:
        with contextlib.suppress(ValueError, OSError):  # Only root may raise the hard limit.
            resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
            return
    wanted = files if hard == unlimited else min(files, hard)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _wait_for_the_end(launch: Callable[[], int], signals: int) -> int:
    """Start the server, and wait for the end of the owner or for a signal. The pid of the server; 0 if it has ended."""
    server = _started(launch)
    while True:
        ready, _, _ = select.select([OWNER, signals], [], [])
        if OWNER in ready:
            asked = os.read(OWNER, 64)
            if not asked:
                return server
            if START in asked and not server:
                _end_orphans()
                server = _started(launch)
        if signals not in ready:
            continue
        told = os.read(signals, 64)
        if server:
            ended, status = os.waitpid(server, os.WNOHANG)
            if ended:
                server = 0
                _say(f"exit {os.waitstatus_to_exitcode(status)}")
        if any(number != signal.SIGCHLD for number in told):
            return server


def _started(launch: Callable[[], int]) -> int:
    server = launch()
    _say(f"pid {server}")
    return server


def _end(server: int, endings: list[signal.Signals]) -> None:
    os.kill(server, signal.SIGCONT)  # A stopped server would not see the signals below.
    for number in endings:
        os.kill(server, number)
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if os.waitpid(server, os.WNOHANG)[0]:
                return
            time.sleep(0.005)
    os.kill(server, signal.SIGKILL)
    os.waitpid(server, 0)


def _end_orphans() -> None:
    """End the processes that the server left: a busy process of Postgres does not see at once that the server is gone.

    SIGTERM comes first: after it a process removes the shared memory that it has made.
    """
    begin = time.monotonic()
    while (passed := time.monotonic() - begin) < 2 * PATIENCE_S:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        for pid in _children():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGTERM if passed < PATIENCE_S else signal.SIGKILL)
        time.sleep(0.005)


def _children() -> list[int]:
    """The child processes of the keeper."""
    found: list[int] = []
    names = os.listdir("/proc")  # noqa: PTH208 - pathlib is slow to import
    for name in filter(str.isdecimal, names):
        with contextlib.suppress(OSError, IndexError), open(f"/proc/{name}/stat", "rb") as stat:  # noqa: PTH123
            if int(stat.read().rpartition(b")")[2].split()[1]) == os.getpid():
                found.append(int(name))
    return found


def remove_shared_memory(folder: str | os.PathLike[str]) -> None:
    """Remove the System V segment that a killed Postgres left, when nobody is attached to it.

    Its key and number are in the file with the pid of the server, and the kernel tells which process made it.
    """
    try:
        with open(os.path.join(folder, POSTGRES_DATA, "postmaster.pid"), encoding="utf-8") as file:  # noqa: PTH118, PTH123
            lines = file.read().split("\n")
        creator, (key, number) = int(lines[0]), (int(word) for word in lines[6].split())
        with open("/proc/sysvipc/shm", encoding="ascii") as table:  # noqa: PTH123
            segments = [[int(word) for word in line.split()] for line in list(table)[1:]]
    except (OSError, ValueError, IndexError):
        return
    for segment_key, segment, _mode, _size, made_by, _last, attached, *_ in segments:
        if (segment_key & 0xFFFFFFFF, segment, made_by, attached) == (key & 0xFFFFFFFF, number, creator, 0):
            ctypes.CDLL(None).shmctl(segment, IPC_RMID, None)


def _say(line: str) -> None:
    with contextlib.suppress(OSError):  # The owner may be gone, which the loop sees.
        os.write(1, f"{line}\n".encode())


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    main(sys.argv[1:])
