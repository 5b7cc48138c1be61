"""One command line: carried out, with every error that a user can cause told in one sentence and a hint.

Only a fault of ours shows a traceback.
"""

from __future__ import annotations

import sys

from pybench.errors import PybenchError
from pybench.exits import Exit


def answer(arguments: list[str]) -> int:
    """Carry out one command line; returns its exit code. Prints every error that a user can cause."""
    if sys.platform != "linux":
        return _refuse(
            f"pybench runs on Linux, and this is {sys.platform}", hint="run it inside WSL 2 or a virtual machine"
        )
    from typer import Exit as Done
    from typer import TyperException
    from typer.main import get_command

    from pybench.cli.app import app

    try:
        # Not by calling it: that turns an interrupt into silence, and a closed pipe into a failure.
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
    except Exception:
        return _our_fault(arguments)
    return Exit.OK if code is None else int(code)


def _refuse(message: str, *, hint: str | None, code: Exit = Exit.BAD_INPUT) -> Exit:
    from pybench.cli.output import complain

    complain(message, hint=hint)
    return code


def interrupted() -> Exit:
    """Say that the user has ended the command."""
    return _refuse("interrupted", hint=None, code=Exit.INTERRUPTED)


def _help_of(error: Exception) -> str:
    context = getattr(error, "ctx", None)
    return f"{context.command_path if context else 'pybench'} --help"


def _without_secrets(text: str, arguments: list[str]) -> str:
    """What is said of a command line: an address may stand where a file or another option was meant."""
    import os

    from pybench.masking import masked_word, secrets_of, without
    from pybench.strategies import ServerKind

    addresses = [*arguments, *filter(None, (os.environ.get(kind.variable) for kind in ServerKind))]
    for address in addresses:
        if (masked := masked_word(address)) != address:
            text = text.replace(address, masked)
    return without(text, frozenset().union(*map(secrets_of, addresses)))


def _our_fault(arguments: list[str]) -> int:
    import platform
    import shlex
    import traceback

    from pybench.cli.output import versions
    from pybench.masking import masked_word

    command = shlex.join(["pybench", *map(masked_word, arguments)])
    print(
        f"{_without_secrets(traceback.format_exc(), arguments)}\n"
        "This is a fault of pybench, not of your input. Please report it with the lines above and these:\n"
        f"  command: {command}\n"
        f"  {versions()}, Python {platform.python_version()}, {platform.platform()}",
        file=sys.stderr,
    )
    return 1
