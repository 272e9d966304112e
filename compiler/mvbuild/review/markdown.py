"""Review -> Markdown for a pull request: a short table first, details folded."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from mvbuild.diagnostics import Diagnostic
from mvbuild.review import words
from mvbuild.review.model import Break, NodeChange, Review

Size = Callable[[int], str]
MARK = "<!-- mvbuild plan -->"
"""The beginning of the comment, by which a bot finds the one to replace."""
_MOST_ROWS = 50
"""GitHub accepts 65,536 characters in a comment."""
_QUIET = ("formatting", "documentation")
_ROW = 400


def review_markdown(review: Review, size: Size) -> str:
    """Starts with a comment that identifies it."""
    shown = [c for c in review.models if c.kind not in _QUIET]
    quiet = [c for c in review.models if c.kind in _QUIET]
    blocks = [
        MARK,
        f"### Plan against {_code(review.against)}",
        f"**{_text(words.counted(review) or 'nothing differs')}**{_work(review, size)}",
    ]
    if shown:
        blocks.append(_table(("model", "change", "what", "who is affected"), [_row(c, review) for c in shown]))
    if quiet:
        blocks.append(f"Nothing but {_of_quiet(quiet)}: {', '.join(_code(c.name) for c in quiet[:_MOST_ROWS])}.")
    blocks += [block for block in (_broken(review), _refreshed(review, size), _others(review), _lint(review)) if block]
    return "\n\n".join(blocks) + "\n"


def _of_quiet(quiet: Iterable[NodeChange]) -> str:
    kinds = {c.kind for c in quiet}
    return " and ".join(word for kind, word in (("formatting", "formatting"), ("documentation", "descriptions")) if kind in kinds)


def _row(change: NodeChange, review: Review) -> Sequence[str]:
    kind = f" ({change.resource_type})" if change.resource_type != "model" else ""
    name = f"{_code(change.name)}{kind}"
    title = f"**{words.title(change)}**" if change.kind in ("breaking", "removed") else words.title(change)
    sentences = [*words.what(change), *(f"because {cause}" for cause in change.because)]
    return name, title, _short("; ".join(sentences)), _affected(change, review)


def _affected(change: NodeChange, review: Review) -> str:
    """The nodes that break first, otherwise the readers."""
    if change.kind in ("formatting", "documentation", "configuration", "equal"):
        return ""
    certain = dict.fromkeys(b.name for b in change.breaks if b.certain)
    maybe = dict.fromkeys(b.name for b in change.breaks if not b.certain and b.name not in certain)
    parts = [f"breaks {_codes(certain)}"] if certain else []
    parts += [f"may break {_codes(maybe)}"] if maybe else []
    broken = {b.consumer for b in change.breaks}
    others = [review.names.get(id, id) for id in change.downstream if id not in broken]
    if others:
        parts.append(f"{'also ' if parts else ''}read by {_codes(others)}")
    return "; ".join(parts)


def _broken(review: Review) -> str:
    lines = [_user(b, c.name) for c in review.models for b in c.breaks]
    return _folded(f"Uses of removed or changed columns ({len(lines)})", _cut(lines)) if lines else ""


def _user(one: Break, name: str) -> str:
    place = f" at {_code(str(one.span))}" if one.span else ""
    return f"- {_code(one.name)} {'uses' if one.certain else 'may use'} {_code(one.column)} of {_code(name)}{place}"


def _refreshed(review: Review, size: Size) -> str:
    if not review.refreshes:
        return ""
    rows = []
    for one in review.refreshes:
        work = f"{size(one.expected.bytes)} of {size(one.full.bytes)}" if one.expected and one.full else "unknown"
        rows.append((_code(one.relation), _text(words.how(one) or "unknown"), work, _short(one.why)))
    note = f"\n\nHow they would be refreshed is unknown: {_text(review.unknown)}." if review.unknown else ""
    table = _table(("table or view", "how", "bytes", "why"), rows)
    return _folded(f"What is refreshed ({len(rows)})", f"{table}{note}")


def _others(review: Review) -> str:
    lines = [f"- test {_code(c.name)}: {_text(words.title(c))}{_summary(c)} ({_code(c.path)})" for c in review.tests]
    lines += [f"- macro {_code(name)} was changed" for name in review.macros]
    lines += [f"- variable {_code(name)} was changed" for name in review.vars]
    return _folded(f"Tests, macros and variables ({len(lines)})", _cut(lines)) if lines else ""


def _summary(change: NodeChange) -> str:
    sentences = "; ".join(words.what(change))
    return f", {_text(sentences)}" if sentences else ""


def _lint(review: Review) -> str:
    if not review.lint:
        return ""
    return _folded(f"New lint findings ({len(review.lint)})", _cut([_finding(d) for d in review.lint]))


def _finding(diagnostic: Diagnostic) -> str:
    place = f" at {_code(str(diagnostic.span))}" if diagnostic.span else ""
    return f"- {diagnostic.severity} {_code(diagnostic.code)}{place}: {_text(diagnostic.message)}"


def _work(review: Review, size: Size) -> str:
    if not review.refreshes:
        return ""
    number = len(review.refreshes)
    count = f" · {number} table{'s' * (number != 1)} or view{'s' * (number != 1)} to refresh"
    if review.unknown:
        return f"{count}; how is unknown: {_text(review.unknown)}"
    expected, full, unknown = words.total(review)
    if not full.bytes:
        return f"{count}, number of bytes unknown" if unknown else count
    rest = f", {unknown} more of unknown size" if unknown else ""
    return f"{count}, {size(expected.bytes)} of {size(full.bytes)}{rest}"


# --- Markdown ----------------------------------------------------------------------------------------------------------------------


def _table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(headers)} |", f"|{'---|' * len(headers)}"]
    lines += [f"| {' | '.join(row)} |" for row in rows[:_MOST_ROWS]]
    more = len(rows) - _MOST_ROWS
    return "\n".join(lines) + (f"\n\n... and {more} more" if more > 0 else "")


def _cut(lines: Sequence[str]) -> str:
    more = len(lines) - _MOST_ROWS
    return "\n".join(lines[:_MOST_ROWS]) + (f"\n- ... and {more} more" if more > 0 else "")


def _folded(summary: str, body: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"


def _codes(names: Iterable[str], most: int = 5) -> str:
    known = list(names)
    more = f" and {len(known) - most} more" if len(known) > most else ""
    return ", ".join(_code(name) for name in known[:most]) + more


def _code(text: str) -> str:
    """As a code span, which may contain everything except backticks and, in a table, bars."""
    text = " ".join(text.replace("|", "\\|").split())
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def _short(text: str) -> str:
    return _text(text if len(text) <= _ROW else f"{text[:_ROW]}...")


def _text(text: str) -> str:
    """Escape words of the project for Markdown; text in backticks is code already."""
    parts = re.split(r"(`[^`]+`)", " ".join(text.split()))
    return "".join(_code(p[1:-1]) if p.startswith("`") and len(p) > 2 else re.sub(r"([\\*_\[\]<>|#~@`])", r"\\\1", p) for p in parts)
