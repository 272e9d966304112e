"""`mvbuild lsp`: the language server that editors start."""

from __future__ import annotations

import click

from mvbuild.cli.options import env, output_options, vars_of


@click.command("lsp")
@click.option("-t", "--target", envvar=env("TARGET"), help="Target to compile projects with.")
@click.option("--vars", envvar=env("VARS"), help="Values for var(), as YAML: '{key: value}'.")
@click.option(
    "--freshness/--no-freshness", default=True, show_default=True, help="Read the freshness of MVs from the catalog in the background."
)
@click.option("--stdio", is_flag=True, expose_value=False, help="Use stdin and stdout. Always on; some editors pass it.")
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
    from mvbuild.lsp.check import CheckOptions

    serve(CheckOptions(target=target, vars=vars_of(vars), freshness=freshness), _failed)
    return 0


def _failed(exc: Exception) -> str:
    """Logs and answers have one message, not a diagnostic."""
    from mvbuild.cli.internal import internal

    found = internal(exc)
    return f"{found.message}. {found.help}"
