"""The commands and options of dbt-core, compared with those of mvbuild -> docs/dbt-commands.md.

    python tests/benchmarks/dbt_commands.py > docs/dbt-commands.md
    SOME_VENV/bin/python tests/benchmarks/dbt_commands.py --names > tests/unit/cli/dbt_core.json

The second command needs a Python with dbt-core, and nothing of mvbuild: it writes the list that the first one and the tests read.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

LIST = Path(__file__).parents[1] / "unit/cli/dbt_core.json"
_HEAD = """# The commands and options of dbt

Every command and option of dbt-core {version}, and what it is in mvbuild. The list is made from dbt-core itself, and a test compares it with `mvbuild --help`.

Options can be written before or after the command, as in dbt, and set as `DBT_<OPTION>` or `MVBUILD_<OPTION>`.

## Commands

| dbt | mvbuild |
|---|---|
"""
_SAME = "the same"
_NO_EFFECT = "accepted; it changes nothing here"
_NOT_USED: Mapping[str, str] = dict.fromkeys(("--profile", "--profiles-dir"), "accepted, not used: targets are in mvbuild.yml")
_PURPOSE: Mapping[str, str] = {
    "build": "the same: `run`, then the data tests that no refresh needed; unit tests are left to `test`",
    "compile": "the same; with `--select` or `--inline` it prints SQL",
    "deps": "the same: [packages](packages.md) of folders, git and archives, with `packages.lock`",
    "docs generate": "another name of `docs build`, which makes a [site](site.md); `compile` also writes `target/manifest.json` for dbt's own site",
    "docs serve": "the same, with live freshness",
    "list": "another name of `ls`",
    "parse": "another name of `compile`",
    "retry": "runs again what failed in the last run, and what was skipped because of it, with the target, the branch and the variables of that run",
    "seed": "loads the seeds that changed; `run` loads them too",
    "source freshness": "the same, by the [snapshots](sources.md) of the sources, without a query",
    "source snapshot-freshness": "another name of `source freshness`",
    "show": "the same; the name of the model needs no `--select`",
}


def names() -> dict[str, Any]:
    """The version of dbt-core, and the long and short options of each command. Only where dbt-core is installed."""
    import click
    from dbt.cli.main import cli  # type: ignore[import-not-found]
    from dbt.version import __version__  # type: ignore[import-not-found]

    def options(command: click.Command) -> list[str]:
        return sorted({name for p in command.params if isinstance(p, click.Option) for name in (*p.opts, *p.secondary_opts)})

    def commands(group: click.Group, before: str) -> Iterator[tuple[str, list[str]]]:
        for name, command in sorted(group.commands.items()):
            if isinstance(command, click.Group):
                yield from commands(command, f"{before}{name} ")
            else:
                yield f"{before}{name}", options(command)

    return {"version": str(__version__), "options": options(cli), "commands": dict(commands(cli, ""))}


def known() -> dict[str, Any]:
    """The committed list."""
    found: dict[str, Any] = json.loads(LIST.read_text(encoding="utf-8"))
    return found


def command_of(name: str) -> Any:
    """The click command of mvbuild for a command of dbt; None if there is none."""
    import click

    from mvbuild.cli.main import group

    found: Any = group
    for word in name.split():
        found = found.get_command(click.Context(found), word) if isinstance(found, click.Group) else None
    return found


def options_of(command: Any) -> dict[str, bool]:
    """Option -> whether it is hidden, because it changes nothing."""
    import click

    return {
        o: p.hidden for p in command.get_params(click.Context(command)) if isinstance(p, click.Option) for o in (*p.opts, *p.secondary_opts)
    }


def verdict(command: str, option: str) -> str | None:
    """What an option of a command is in mvbuild; None if that is written nowhere."""
    from mvbuild.cli.dbt_options import INSTEAD
    from mvbuild.cli.main import group

    mine = options_of(group) | options_of(command_of(command))
    if option in mine:
        return _NO_EFFECT if mine[option] else _NOT_USED.get(option, _SAME)
    return f"not here. {INSTEAD[option]}" if option in INSTEAD else None


def page() -> str:
    """The page."""
    from mvbuild.cli.main import NOT_HERE

    found = known()
    commands: dict[str, list[str]] = found["commands"]
    lines = []
    verdicts: dict[str, dict[str, list[str]]] = {}
    for name, options in commands.items():
        if command_of(name) is None:
            lines.append(f"| `{name}` | not here. {NOT_HERE[name]} |")
            continue
        lines.append(f"| `{name}` | {_PURPOSE.get(name, _SAME)} |")
        for option in options:
            verdicts.setdefault(option, {}).setdefault(verdict(name, option) or "?", []).append(name)
    out = [_HEAD.format(version=found["version"]) + "\n".join(lines), "\n## Options\n\n| dbt | mvbuild |\n|---|---|"]
    for option, by_verdict in sorted(verdicts.items(), key=lambda item: item[0].lstrip("-").removeprefix("no-")):
        usual = max(by_verdict, key=lambda said: len(by_verdict[said]))
        others = "".join(f" With {_listed(names)}: {said.rstrip('.')}." for said, names in by_verdict.items() if said != usual)
        out.append(f"| `{option}` | {usual}{'.' if others and not usual.endswith('.') else ''}{others} |")
    return "\n".join(out) + "\n"


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    if "--names" in sys.argv:
        json.dump(names(), sys.stdout, indent=1)
        sys.stdout.write("\n")
    else:
        sys.stdout.write(page())
