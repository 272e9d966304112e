"""`mvbuild completion SHELL`: the script with which a shell completes commands, options, models, selectors and targets."""

from __future__ import annotations

import click

from mvbuild.cli.options import output_options

_BREAKS = """# Treat a selector like tag:daily as one word.
COMP_WORDBREAKS=${COMP_WORDBREAKS//:/}
"""


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@output_options
def command(shell: str) -> int:
    """Print the completion script of a shell: `eval "$(mvbuild completion bash)"` in its start file. See docs/editors.md."""
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None, shell
    root = click.get_current_context().find_root().command
    # Not `source()`, which would run the shell to check its version.
    maker = found(root, {}, "mvbuild", "_MVBUILD_COMPLETE")
    script = maker.source_template % maker.source_vars()
    click.echo((_BREAKS if shell == "bash" else "") + script.strip())
    return 0
