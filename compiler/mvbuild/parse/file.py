"""one SQL file -> ParsedFile: its template rendered, its query parsed; and the same from the cache of an earlier run."""

from __future__ import annotations

from contextlib import suppress

from mvbuild.cache.codec import Codec, Uncacheable
from mvbuild.cache.keys import digest
from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic
from mvbuild.diagnostics.causes import UNSET
from mvbuild.parse.model import Asked, Query, Read, TimeTravel
from mvbuild.parse.templates import Templates
from mvbuild.project.setting import Layer, Setting
from mvbuild.project.settings import Own
from mvbuild.source import MappedText, SourceFile

_CODEC = Codec((Setting, Query, Read, TimeTravel))


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedFile:
    """`query` is None if something is wrong. The diagnostics are in `rendering` for the template, and in `sql` for the query."""

    layers: tuple[Layer, ...]
    query: Query | None
    text: MappedText | None = None
    """The output of the template; only set if there is no query to store it."""
    has_text: bool = True
    rendering: tuple[Diagnostic, ...] = ()
    sql: tuple[Diagnostic, ...] = ()
    asked: tuple[Asked, ...] = ()
    is_plain: bool = True


def key_of(file: SourceFile, own: Own | None) -> str:
    """`own`: the value of `this`, None in a test."""
    return digest("sql", own and (own.model, own.namespace, own.alias), file.text)


def parse_file(file: SourceFile, own: Own | None, templates: Templates) -> ParsedFile:
    from mvbuild.parse.sql import parse_query

    rendered = templates.render(file, own)
    query, wrong = parse_query(rendered.text, templates.names_in_text(own, rendered.layers)) if rendered.text else (None, ())
    return ParsedFile(
        layers=rendered.layers,
        query=query,
        text=rendered.text,
        has_text=rendered.text is not None,
        rendering=rendered.diagnostics,
        sql=_own_errors(wrong, rendered.diagnostics),
        asked=rendered.asked,
        is_plain=rendered.is_plain,
    )


def _own_errors(wrong: tuple[Diagnostic, ...], rendering: tuple[Diagnostic, ...]) -> tuple[Diagnostic, ...]:
    """Without the errors that the SQL may have only because a value of the template is missing in it."""
    from mvbuild.parse.sql_slips import COMMA

    if any(d.code in UNSET for d in rendering):
        return ()
    return wrong if not rendering else tuple(d for d in wrong if COMMA not in d.message)


def dumped(parsed: ParsedFile, file: SourceFile, templates: Templates) -> str | None:
    """None for what is not cached: files with diagnostics, which are few, and places in other files."""
    if parsed.query is None or parsed.rendering or parsed.sql:
        return None
    surroundings = "" if parsed.is_plain else templates.surroundings
    with suppress(Uncacheable):
        return _CODEC.dumps((surroundings, parsed.asked, parsed.layers, parsed.query), file)
    return None


def loaded(cache: str, file: SourceFile, templates: Templates) -> ParsedFile | None:
    """None if the project would answer the template differently now."""
    try:
        surroundings, asked, layers, query = _CODEC.loads(cache, file)
    except Uncacheable:
        return None
    if not isinstance(query, Query) or surroundings not in ("", templates.surroundings) or not templates.still(asked):
        return None
    return ParsedFile(layers=layers, query=query)
