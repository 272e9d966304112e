"""Review -> text for a terminal."""

from __future__ import annotations

from collections.abc import Callable

from mvbuild.diagnostics.render import to_text
from mvbuild.review import words
from mvbuild.review.model import NodeChange, Refresh, Review

Size = Callable[[int], str]


def review_text(review: Review, size: Size) -> str:
    """A paragraph for each change, the most important first; then the refreshes, new lint findings, and a count."""
    blocks = [_change(change, review) for change in review.changes]
    if review.macros:
        blocks.append(f"macros      {', '.join(review.macros)}")
    if review.vars:
        blocks.append(f"variables   {', '.join(review.vars)}")
    if review.refreshes:
        blocks.append(
            "\n".join(
                ["What this refreshes" + (f" (how is unknown: {review.unknown})" if review.unknown else ""), *_refreshes(review, size)]
            )
        )
    if review.lint:
        blocks.append(f"New lint findings\n\n{to_text(review.lint)}")
    counted = words.counted(review)
    return "\n\n".join([*blocks, f"Against {review.against}: {counted or 'nothing differs'}.{_work(review, size)}"])


def _change(change: NodeChange, review: Review) -> str:
    kind = f"{change.resource_type} " if change.resource_type != "model" else ""
    lines = [f"{words.title(change)}  {kind}{change.name}  ({change.path})"]
    lines += [f"    {line}" for line in words.what(change)]
    lines += [f"    because {cause}" for cause in change.because]
    lines += [f"    {line}" for line in words.users(change.breaks)]
    no_reader = words.no_reader(change)
    lines += [f"    {no_reader}"] if no_reader else []
    if change.downstream and change.kind not in ("formatting", "documentation", "configuration", "equal"):
        lines.append(f"    read by {words.names(change.downstream, review)}")
    return "\n".join(lines)


def _refreshes(review: Review, size: Size) -> list[str]:
    return [f"    {_line(one, size)}" for one in review.refreshes]


def _line(one: Refresh, size: Size) -> str:
    how = words.how(one)
    work = f", {size(one.expected.bytes)} of {size(one.full.bytes)}" if one.expected and one.full else ""
    return f"{one.relation}  {f'{how}{work}: ' if how else ''}{one.why}"


def _work(review: Review, size: Size) -> str:
    expected, full, unknown = words.total(review)
    if review.unknown or not review.refreshes:
        return ""
    rest = f"; the size of {unknown} refresh{'es' * (unknown != 1)} is unknown" if unknown else ""
    return f" Reads and writes {size(expected.bytes)} of {size(full.bytes)}{rest}." if full.bytes or not unknown else ""
