"""`mvbuild lsp`: the language server, which editors start."""

from __future__ import annotations

import click

from mvbuild.cli.options import env, output_options, vars_of


@click.command("lsp")
@click.option("-t", "--target", envvar=env("TARGET"), help="The target by which projects are read.")
@click.option("--vars", envvar=env("VARS"), help="Values for var(), as YAML: '{key: value}'.")
@click.option("--freshness/--no-freshness", default=True, show_default=True, help="Ask the catalog, in the background, how fresh MVs are.")
@click.option("--stdio", is_flag=True, expose_value=False, help="Talk over stdin and stdout, as it always does: some editors say so.")
@output_options
def command(target: str | None, vars: str | None, freshness: bool) -> int:
    """Speak the Language Server Protocol over stdin and stdout: diagnostics, definitions, hovers and completion. See docs/editors.md."""
    from mvbuild.cli.output import report
    from mvbuild.diagnostics import error

    try:
        from mvbuild.lsp.server import serve
    except ModuleNotFoundError as exc:
        if (exc.name or "").partition(".")[0] not in ("pygls", "lsprotocol", "attrs", "cattrs"):
            raise
        return report([error("missing-package", "The language server needs the package pygls", help="pip install 'mvbuild[lsp]'")])
    from mvbuild.lsp.check import Choices

    serve(Choices(target=target, vars=vars_of(vars), freshness=freshness))
    return 0
