"""`mvbuild deps`: install the packages of packages.yml."""

from __future__ import annotations

import click

from mvbuild.cli.options import Options, project_options


@click.command("deps")
@click.option("--upgrade", is_flag=True, help="Fetch the packages of packages.yml again, whatever packages.lock says.")
@project_options
def command(options: Options, upgrade: bool) -> int:
    """Install the packages of packages.yml in dbt_packages, and write packages.lock. No other command fetches anything."""
    from mvbuild.api.dependencies import deps
    from mvbuild.cli.output import say

    found = deps(options.project_dir, vars=options.vars, upgrade=upgrade)
    for package in found:
        entry = package.entry
        exact = entry.get("commit") or entry.get("archive") or entry.get("local", "")
        say(f"{package.name}  {exact[:12] if 'local' not in entry else exact}{'  new' if package.is_new else ''}")
    say(f"Installed {len(found)} package{'s' * (len(found) != 1)}." if found else "There are no packages to install.")
    return 0
