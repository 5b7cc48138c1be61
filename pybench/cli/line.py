"""Runs one command line, and reports every error that a user can cause in one sentence and a hint.

Only a bug of pybench shows a traceback.
"""

from __future__ import annotations

import sys

from pybench.errors import PybenchError
from pybench.exits import Exit


def answer(arguments: list[str]) -> int:
    """Run one command line and return its exit code. Prints every error that a user can cause."""
    if sys.platform != "linux":
        return _refuse(
            f"pybench runs on Linux only, and this system is {sys.platform}",
            hint="run pybench inside WSL 2 or a virtual machine",
        )
    from typer import Exit as Done
    from typer import TyperException
    from typer.main import get_command

    from pybench.cli.app import app

    try:
        # Calling `command` directly would swallow an interrupt, and turn a closed pipe into a failure.
        command = get_command(app)
        with command.make_context("pybench", [*arguments] or ["--help"]) as context:
            code = command.invoke(context)
    except Done as done:
        return done.exit_code
    except PybenchError as error:
        hint = None if error.hint is None else _without_secrets(error.hint, arguments)
        return _refuse(_without_secrets(error.message, arguments), hint=hint, code=error.exit)
    except TyperException as error:
        message = _without_secrets(error.format_message(), arguments)
        return _refuse(f"{message[:1].lower()}{message[1:].removesuffix('.')}", hint=_help_of(error))
    except KeyboardInterrupt:
        return interrupted()
    except Exception as error:
        if isinstance(error, FileNotFoundError) and not _has_working_folder():
            message = "the folder that pybench was called in was removed"
            return _refuse(message, hint="cd to a folder that exists, or name one from / on")
        return _our_fault(arguments)
    return Exit.OK if code is None else int(code)


def _has_working_folder() -> bool:
    from pathlib import Path

    try:
        Path.cwd()
    except FileNotFoundError:
        return False
    return True


def _refuse(message: str, *, hint: str | None, code: Exit = Exit.BAD_INPUT) -> Exit:
    from pybench.cli.output import complain

    complain(message, hint=hint)
    return code


def interrupted() -> Exit:
    """Report that the user interrupted the command."""
    return _refuse("interrupted", hint=None, code=Exit.INTERRUPTED)


def _help_of(error: Exception) -> str:
    context = getattr(error, "ctx", None)
    return f"{context.command_path if context else 'pybench'} --help"


def _without_secrets(text: str, arguments: list[str]) -> str:
    """`text` without the passwords of a command line, whose addresses may stand where a file name was expected."""
    import os
    import re
    from pathlib import PurePath

    from pybench.masking import is_sought, masked_url, secrets_of, without
    from pybench.strategies import ServerKind

    named = list(filter(None, (os.environ.get(kind.variable) for kind in ServerKind)))
    pairs = [*zip(arguments, _masked(arguments), strict=True), *((address, masked_url(address)) for address in named)]
    for address, masked in pairs:
        if masked != address:
            # An address that was taken for a file has lost one of its slashes.
            text = text.replace(address, masked).replace(str(PurePath(address)), masked)
    secrets = frozenset[str]().union(*(secrets_of(address) for address, _ in pairs))
    # The error of a list option quotes one item of the list: a password with commas was split at them.
    pieces = {piece for secret in secrets for piece in re.split(r"[,()\s]", secret) if is_sought(piece)}
    return without(text, secrets | pieces)


def _masked(arguments: list[str]) -> list[str]:
    """The words of a command line with passwords masked.

    The word after `--redis` or `--postgres` is masked whatever it looks like, such as 'redis-cli -a PASSWORD'.
    """
    from pybench.masking import masked_url, masked_word
    from pybench.strategies import ServerKind

    options = {f"--{kind}" for kind in ServerKind}
    masked = []
    for before, word in zip(["", *arguments], arguments, strict=False):
        option, equals, value = word.partition("=")
        if before in options:
            masked.append(masked_url(word))
        else:
            masked.append(f"{option}={masked_url(value)}" if equals and option in options else masked_word(word))
    return masked


def _our_fault(arguments: list[str]) -> int:
    import platform
    import shlex
    import traceback

    from pybench.cli.output import versions

    command = shlex.join(["pybench", *_masked(arguments)])
    print(
        f"{_without_secrets(traceback.format_exc(), arguments)}\n"
        "This is a bug in pybench, not in your input. Please report it with the lines above and these:\n"
        f"  command: {command}\n"
        f"  {versions()}, Python {platform.python_version()}, {platform.platform()}",
        file=sys.stderr,
    )
    return 1
