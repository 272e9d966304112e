"""RULES -> docs/lint-rules.md. `python -m mvbuild.lint.reference > docs/lint-rules.md` writes it; a test fails if it is out of date."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping

from mvbuild.lint.model import Rule
from mvbuild.lint.rules import RULES

_HEAD = """# Lint rules

The rules of [`mvbuild lint`](lint.md). Codes are stable: configuration, allowances and scripts may rely on them.
"""


def page() -> str:
    """The page of all rules: the table, and a section per rule."""
    rows = [f"| [`{rule.code}`](#{rule.code}) | {rule.level} | {'yes' if rule.fix else ''} | {rule.title} |" for rule in RULES]
    table = "\n".join(["| rule | level | `--fix` | what it finds |", "|---|---|---|---|", *rows])
    return "\n\n".join([_HEAD.strip("\n"), table, *(_section(rule) for rule in RULES)]) + "\n"


def _section(rule: Rule) -> str:
    parts = [f"## {rule.code}", f"{rule.title} {rule.why}", f"Level: {rule.level}. {rule.help}"]
    if rule.fix:
        parts.append(f"`--fix`: {rule.fix}")
    if rule.options:
        rows = [f"| `{name}` | `{json.dumps(o.default)}` | {o.doc} |" for name, o in rule.options.items()]
        parts.append("\n".join(["| option | default | meaning |", "|---|---|---|", *rows]))
    is_named = list(rule.wrong.values()) == list(rule.right.values())
    parts += ["Wrong:", _files(rule.wrong, is_named=is_named), "Right:", _files(rule.right, is_named=is_named)]
    return "\n\n".join(parts)


def _files(files: Mapping[str, str], *, is_named: bool) -> str:
    """Each file as a code block, under its name if that matters."""
    blocks = []
    for path, text in files.items():
        kind = path.rpartition(".")[2]
        sign = {"sql": "--", "csv": ""}.get(kind, "#")
        title = f"{sign} {path}\n" if sign and (is_named or len(files) > 1) else ""
        blocks.append(f"```{'yaml' if kind == 'yml' else kind}\n{title}{text.strip()}\n```")
    return "\n\n".join(blocks)


if __name__ == "__main__":
    sys.stdout.write(page())
