"""SQL + old names -> new names: a query that reads the same tables after they were renamed, with otherwise unchanged text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from mvbuild.diagnostics import ProjectError
from mvbuild.names import TableIdentifier, quote
from mvbuild.parse.model import Query, Read
from mvbuild.parse.project import parse_text
from mvbuild.parse.splice import Edit, edited


def with_new_names(sql: str, complete: Callable[[Read], TableIdentifier], names: Mapping[TableIdentifier, TableIdentifier]) -> str | None:
    """The Spark SQL of a view; `complete` returns the full name of what it reads. None if it reads nothing that was renamed, or cannot be
    parsed."""
    by_key = {old.key: new for old, new in names.items()}
    try:
        query = parse_text("view", sql)
    except ProjectError:
        return None
    found = [(read, by_key[key]) for read in query.reads if (key := complete(read).key) in by_key]
    return edited(query.sql, [e for read, new in found for e in _edits(query, read, new)]).text if found else None


def with_new_names_in_text(text: str, names: Mapping[TableIdentifier, TableIdentifier]) -> str:
    """The same for a dialect that is not parsed: full names are replaced, with their quotes."""
    for old, new in names.items():
        for was, becomes in ((old.parts, new.parts), (old.parts[1:], new.parts[1:])):
            text = _replaced(text, was, becomes)
    return text


def mentions(text: str, name: TableIdentifier) -> bool:
    """Whether a text, in any dialect, contains the last part of the name as a word."""
    return re.search(_spelled(name.parts[-1:]), text, flags=re.IGNORECASE) is not None


def _edits(query: Query, read: Read, new: TableIdentifier) -> Iterator[Edit]:
    """Columns qualified by the old name become qualified by the new one, unless the query uses that word for something else."""
    here = read.span
    if read.alias is not None or not read.qualifiers:
        yield Edit(start=read.start, end=read.end, new=new.sql, origin=here)
        return
    is_clear = re.search(_spelled((new.name,)), query.sql.text, flags=re.IGNORECASE) is None
    name = quote(new.name if is_clear else read.parts[-1])
    alias = "" if is_clear else f" AS {name}"
    at = max(read.tail, read.travel.end if read.travel else read.end)
    yield Edit(start=read.start, end=read.end, new=new.sql + (alias if at == read.end else ""), origin=here)
    if alias and at > read.end:
        yield Edit(start=at, end=at, new=alias, origin=here)
    for start, end in read.qualifiers:
        yield Edit(start=start, end=end, new=name, origin=here)


def _replaced(text: str, was: tuple[str, ...], becomes: tuple[str, ...]) -> str:
    return re.sub(rf"(?<!\.){_spelled(was)}", lambda match: _quoted(match[0], becomes), text, flags=re.IGNORECASE)


def _spelled(parts: tuple[str, ...]) -> str:
    words = r"\s*\.\s*".join(rf"[`\"]?{re.escape(part)}[`\"]?" for part in parts)
    return rf"(?<![\w`\"]){words}(?![\w`\"])"


def _quoted(text: str, parts: tuple[str, ...]) -> str:
    mark = next((m for m in '`"' if m in text), "")
    return ".".join(f"{mark}{part}{mark}" for part in parts)
