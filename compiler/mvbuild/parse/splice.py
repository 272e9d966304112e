"""Query + replacements of its reads -> MappedText: the user's own text with only the table names replaced."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping

from mvbuild.dataclass import dataclass
from mvbuild.names import quote
from mvbuild.parse.model import Query, Read
from mvbuild.source import MappedText, Segment, SourceMap, Span


@dataclass(frozen=True, slots=True)
class Replacement:
    """What Spark reads instead of a table's name. `alias` keeps columns qualified by the name valid; a read's own alias takes
    precedence."""

    text: str | MappedText
    alias: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """Replace [start, end) with `new`; a plain string maps back to `origin`."""

    start: int
    end: int
    new: str | MappedText
    origin: Span


def splice(query: Query, replacements: Mapping[int, Replacement]) -> MappedText:
    """Replace reads by their index in `query.reads`. All other bytes stay the same."""
    edits = [edit for index, replacement in replacements.items() for edit in _edits(query.reads[index], replacement)]
    return edited(query.sql, edits)


def edited(text: MappedText, edits: Iterable[Edit], *, spaced: bool = True) -> MappedText:
    """Apply edits that do not overlap. If `spaced`, a space is inserted where two words would merge."""
    pieces: list[MappedText] = []
    at = 0
    for edit in sorted(edits, key=lambda e: (e.start, e.end)):
        pieces.append(cut(text, at, edit.start))
        new = _computed(edit.new, edit.origin) if isinstance(edit.new, str) else edit.new
        if spaced and _glued(text.text[max(edit.start - 1, 0) : edit.start], new.text[:1]):
            pieces.append(_computed(" ", edit.origin))
        pieces.append(new)
        if spaced and _glued(new.text[-1:], text.text[edit.end : edit.end + 1]):
            pieces.append(_computed(" ", edit.origin))
        at = edit.end
    pieces.append(cut(text, at, len(text.text)))
    return joined(pieces)


def cut(text: MappedText, start: int, end: int) -> MappedText:
    """The part [start, end) with its own map back."""
    segments = text.map.segments
    first = max(bisect_right(segments, start, key=lambda s: s.offset) - 1, 0)
    part: list[Segment] = []
    for segment in segments[first:]:
        if segment.offset >= end and part:
            break
        skipped = max(start - segment.offset, 0)
        part.append(Segment(max(segment.offset - start, 0), _later(segment, skipped), segment.verbatim))
    return MappedText(text.text[start:end], SourceMap(tuple(part)))


def joined(pieces: Iterable[MappedText]) -> MappedText:
    """The texts in sequence; empty ones have no effect."""
    texts: list[str] = []
    segments: list[Segment] = []
    at = 0
    last: MappedText | None = None
    for last in pieces:
        if last.text:
            segments += (Segment(at + s.offset, s.origin, s.verbatim) for s in last.map.segments)
            texts.append(last.text)
            at += len(last.text)
    if not segments and last:
        segments += last.map.segments
    return MappedText("".join(texts), SourceMap(tuple(segments)))


def _edits(read: Read, replacement: Replacement) -> Iterable[Edit]:
    end = read.travel.end if read.travel else read.end
    start, before, after = read.wrap or (read.start, "", "")
    aliased = read.alias is None and replacement.alias is not None
    alias = quote(replacement.alias or "")
    addition = f" AS {alias}" if aliased else ""
    is_later = read.tail > end
    new, after = replacement.text, ("" if is_later else addition) + after
    if isinstance(new, MappedText):
        new = joined((_computed(before, read.span), new, _computed(after, read.span)))
    else:
        new = f"{before}{new}{after}"
    yield Edit(start=start, end=end, new=new, origin=read.span)
    if is_later and aliased:
        yield Edit(start=read.tail, end=read.tail, new=addition, origin=read.span)
    for first, stop in read.qualifiers if aliased else ():
        yield Edit(start=first, end=stop, new=alias, origin=read.span)


def _computed(text: str, origin: Span) -> MappedText:
    return MappedText(text, SourceMap((Segment(0, origin, verbatim=False),)))


def _later(segment: Segment, skipped: int) -> Span:
    origin = segment.origin
    if not segment.verbatim or not skipped:
        return origin
    return Span(origin.file, min(origin.start + skipped, origin.end), origin.end)


def _glued(left: str, right: str) -> bool:
    return _is_word(left) and _is_word(right)


def _is_word(character: str) -> bool:
    return character.isalnum() or character in ("_", "`") if character else False
