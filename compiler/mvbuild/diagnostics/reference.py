"""CODES -> docs/errors.md. `python -m mvbuild.diagnostics.reference > docs/errors.md` writes it; a test fails if it is out of date."""

from __future__ import annotations

import sys

from mvbuild.diagnostics.codes import CODES


def page() -> str:
    """The page of all codes, in the order of the table."""
    head = (
        "# Error codes\n\n"
        "Every diagnostic has one of these codes, the place in your file, and what to do. "
        "Codes are stable: scripts may rely on them.\n"
    )
    sections = [f"## {name}\n\n{code.title} {code.help}\n" for name, code in CODES.items()]
    return "\n".join([head, *sections])


if __name__ == "__main__":
    sys.stdout.write(page())
