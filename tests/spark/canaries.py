"""secrets + what was written, printed or stored -> where one of them occurs: unchanged, escaped, encoded, or in a compressed file."""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import quote, quote_plus


def found_in(content: bytes, secrets: Iterable[str]) -> list[str]:
    """The secrets that a text or file holds."""
    if content.startswith(b"\x1f\x8b"):
        content = gzip.decompress(content)
    return [secret for secret in secrets if any(spelled in content for spelled in _spellings(secret))]


def leaks(written: Mapping[str, bytes], secrets: Iterable[str]) -> list[tuple[str, str]]:
    """(name, secret) of everything that holds one. That there is something to search is the caller's to know."""
    secrets = tuple(secrets)
    return [(name, secret) for name, content in written.items() for secret in found_in(content, secrets)]


def below(*folders: Path) -> dict[str, bytes]:
    """Every file."""
    return dict(_files(folders))


def _files(folders: Iterable[Path]) -> Iterator[tuple[str, bytes]]:
    for folder in folders:
        for path in [folder] if folder.is_file() else sorted(folder.rglob("*")):
            if path.is_file() and not path.is_symlink():
                yield str(path), path.read_bytes()


def _spellings(secret: str) -> set[bytes]:
    # Without the padding, and in the middle of a longer text: the three ways that it may fall on groups of three bytes.
    encoded = {b64encode(b"x" * start + secret.encode())[start + 1 if start else 0 : -4] for start in range(3)}
    plain = {secret, quote(secret, safe=""), quote(secret), quote_plus(secret), json.dumps(secret)[1:-1]}
    return {text.encode() for text in plain} | {text for text in encoded if len(text) > 8}
