"""`mvbuild branch`, `docs` ... and the word after it -> one of the commands of that group, or which ones there are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import click


class NoSuchCommand(click.UsageError):
    """A command that does not exist; `known` are the names of those that do."""

    def __init__(self, name: str, known: Iterable[str], ctx: click.Context) -> None:
        super().__init__(f"Unknown command '{name}'", ctx)
        self.name = name
        self.known = tuple(known)


class Subcommands(click.Group):
    """Without a command it is an error: click's default, its whole help as the message of an error, hides what is wrong."""

    aliases: ClassVar[Mapping[str, str]] = {}
    """dbt's names of its commands."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"no_args_is_help": False, **kwargs})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return super().get_command(ctx, self.aliases.get(cmd_name, cmd_name))

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if not args[0].startswith("-") and not ctx.resilient_parsing and self.get_command(ctx, args[0]) is None:
            raise NoSuchCommand(args[0], (*self.list_commands(ctx), *self.aliases), ctx)
        return super().resolve_command(ctx, args)

    def missing(self, ctx: click.Context) -> str:
        """The message for a call without a command."""
        known = self.list_commands(ctx)
        what = f"write `{ctx.command_path} {known[0]}`" if len(known) == 1 else f"choose one of {', '.join(known)}"
        return f"Missing command: {what}"
