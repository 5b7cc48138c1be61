"""How `--help` looks: plain text under headings, readable at 80 columns, without loading a terminal library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typer.core import TyperCommand, TyperGroup

from pybench.cli.output import data

if TYPE_CHECKING:
    from typer._click import Context, HelpFormatter, Parameter
    from typer.core import TyperOption


class PromptGroup(TyperGroup):
    """The commands of one program, whose helps do not wait for a library.

    An option that was not given is validated by one that takes longer to load than all of a help, unless it is a flag
    that is off.
    """

    def get_help_option(self, ctx: Context) -> TyperOption | None:
        """The `--help` of the program itself, off where a command's is asked for."""
        option = _told_as_data(super().get_help_option(ctx))
        if option is not None:
            option.default = False
        return option


class SectionedCommand(TyperCommand):
    """A command whose options stand under the heading that each names as its `rich_help_panel`."""

    def get_help_option(self, ctx: Context) -> TyperOption | None:
        """Its `--help`."""
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
                # Its name says what it is; the type that follows it would be Python's.
                heading, record = "Arguments", (record[0].partition(" <")[0], record[1])
            sections.setdefault(heading, []).append(record)
        for heading, records in sections.items():
            with formatter.section(heading):
                formatter.write_dl(records, col_max=26)


def _told_as_data(option: TyperOption | None) -> TyperOption | None:
    """`option`, its text written as every other: to a pipe that is closed, too, and to a disk that is full."""
    if option is not None:
        option.callback = _show
    return option


def _show(ctx: Context, _parameter: Parameter, value: bool) -> None:
    if value:
        data(ctx.get_help())
        ctx.exit()
