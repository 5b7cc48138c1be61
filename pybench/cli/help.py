"""The layout of `--help`: plain text under headings, readable at 80 columns, without loading a terminal library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typer.core import TyperCommand, TyperGroup

from pybench.cli.output import data

if TYPE_CHECKING:
    from typer._click import Context, HelpFormatter, Parameter
    from typer.core import TyperOption


class PromptGroup(TyperGroup):
    """The group of commands, whose help is shown without loading a slow library.

    Typer validates an option that was not given by a library that loads longer than the help takes; a flag that is off
    is not validated.
    """

    def list_commands(self, ctx: Context) -> list[str]:
        """The names of the commands. Typer lists a group of commands last; the lab stands behind the demo."""
        names = [name for name in super().list_commands(ctx) if name != "lab"]
        return [*names[:1], "lab", *names[1:]]

    def get_help_option(self, ctx: Context) -> TyperOption | None:
        """The `--help` of the program itself, which is off when the user asks for the help of a command."""
        option = _told_as_data(super().get_help_option(ctx))
        if option is not None:
            option.default = False
        return option


class SectionedCommand(TyperCommand):
    """A command whose options are listed under headings; an option names its heading as `rich_help_panel`."""

    def get_help_option(self, ctx: Context) -> TyperOption | None:
        """The command's `--help`."""
        return _told_as_data(super().get_help_option(ctx))

    def format_options(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the arguments and options, section by section, in the order in which they are declared."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            heading = getattr(parameter, "rich_help_panel", None) or "Options"
            if parameter.param_type_name == "argument":
                # The type after the name would be a Python type, which says nothing to a user.
                heading, record = "Arguments", (record[0].partition(" <")[0], record[1])
            sections.setdefault(heading, []).append(record)
        for heading, records in sections.items():
            with formatter.section(heading):
                formatter.write_dl(records, col_max=26)


def _told_as_data(option: TyperOption | None) -> TyperOption | None:
    """`option`, which writes the help as data, so that a closed pipe or a full disk is handled as everywhere else."""
    if option is not None:
        option.callback = _show
    return option


def _show(ctx: Context, _parameter: Parameter, value: bool) -> None:
    if value:
        data(ctx.get_help())
        ctx.exit()
