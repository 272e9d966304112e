"""a place in rendered SQL -> a note with what a template wrote there, which the user's file does not show."""

from __future__ import annotations

from collections.abc import Iterator

from mvbuild.diagnostics import Note
from mvbuild.parse import placeholder
from mvbuild.source import MappedText

_MOST = 120


def written_by_template(sql: MappedText, offset: int, word: str) -> Iterator[Note]:
    """No note if the word at the offset is in the file itself, or is the result of ref() or source()."""
    given = sql.given(offset)
    if given is not None and placeholder.PREFIX not in given and word in given:
        lines = given.strip().splitlines()
        yield Note(message=f"the template writes {lines[0][:_MOST]}{' ...' if len(lines) > 1 or len(lines[0]) > _MOST else ''}")
