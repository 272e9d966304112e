"""text + environment -> the text without passwords, tokens and keys, for reports of unexpected failures."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from mvbuild.diagnostics.render import without_secrets

_NAME = re.compile(r"pass|pwd|pw$|secret|token|credential|key|sas|auth", re.IGNORECASE)
_SHORTEST = 6
HIDDEN = "***"
"""In the place of a secret."""


def masked(text: str, env: Mapping[str, str]) -> str:
    """Mask the values of variables with a secret's name, passwords in addresses, and texts that look like secrets."""
    for secret in sorted(_secrets(env), key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return without_secrets(text)


def _secrets(env: Mapping[str, str]) -> set[str]:
    found = {value for name, value in env.items() if _NAME.search(name)}
    for value in env.values():
        password = _password(value) if "://" in value and "@" in value else None
        found |= {password, unquote(password)} if password else set()
    # "id:secret" of OAuth, "Bearer <token>", a password whose @ a driver took for the end of it.
    found |= {part for value in tuple(found) for part in re.split(r"[:\s@]", value)}
    return {secret for secret in found if len(secret) >= _SHORTEST}


def _password(address: str) -> str | None:
    try:
        return urlsplit(address).password
    except ValueError:
        return None
