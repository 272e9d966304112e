"""`mvbuild clean`: remove generated files, never the catalog."""

from __future__ import annotations

import shutil

import click

from mvbuild.cli.options import Options, project_options


@click.command("clean")
@project_options
def command(options: Options) -> int:
    """Delete the target directory. The catalog and its warehouse, including .mvbuild/, are never touched."""
    import os

    from mvbuild.cli.output import report, say
    from mvbuild.diagnostics import error
    from mvbuild.project.load import load_project

    project = load_project(options.project_dir, target=options.target, vars=options.vars, env=os.environ, target_path=options.target_path)
    link = project.target_path
    path, root = link.resolve(), project.root.resolve()
    kept = [root, root / ".mvbuild", *(root / part for part in ("models", "seeds", "macros", "tests"))]
    if any(k == path or path in k.parents for k in kept) or (root / ".mvbuild") in path.parents:
        return report([error("bad-config", f"{path} contains files that mvbuild did not generate; nothing was deleted")])
    if path.is_dir():
        shutil.rmtree(path)
        if link.is_symlink():
            path.mkdir()  # so that the link still leads somewhere
        say(f"{'Emptied' if link.is_symlink() else 'Deleted'} {path}.")
    elif link.is_symlink():
        say(f"Deleted {link}: it was a link to {link.readlink()}, which does not exist.")
        link.unlink()
    return 0
