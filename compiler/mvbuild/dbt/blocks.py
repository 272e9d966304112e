"""Draft of a SQL file -> the same without dbt-only parts: branches of is_incremental(), and tags that mvbuild does not know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Literal

from jinja2 import TemplateError

from mvbuild.dataclass import dataclass
from mvbuild.dbt.drafts import Draft
from mvbuild.parse.sandbox import Sandbox
from mvbuild.parse.template_text import Lexeme, TemplateText
from mvbuild.project.keys import TESTS
from mvbuild.source import SourceFile, Span

Tag = tuple[Lexeme, ...]
Truth = Literal["yes", "no", "mixed", "other"]
_CALL = ("is_incremental", "(", ")")


@dataclass(slots=True)
class Found:
    """The dbt-only tags of a file."""

    tests: dict[str, Span] = field(default_factory=dict)
    """Generic tests by name."""
    materializations: dict[str, Span] = field(default_factory=dict)
    snapshots: dict[str, Span] = field(default_factory=dict)
    is_incremental: list[Span] = field(default_factory=list)
    """The places of is_incremental()."""
    replaced: list[Span] = field(default_factory=list)
    """The places where it could only be replaced by false."""


def lexed(file: SourceFile) -> TemplateText | None:
    try:
        return TemplateText.of(Sandbox(), file)
    except (TemplateError, ValueError):
        return None


def cut_tags(draft: Draft, text: TemplateText) -> Found:
    """Turn tests that replace built-in ones into macros, and cut materializations and snapshots."""
    found = Found()
    opened: dict[str, Tag] = {}
    for tag in text.tags:
        words = _words(tag)
        if tag[0].kind != "block_begin" or not words:
            continue
        word = words[0]
        if word in ("test", "data_test") and len(words) > 1:
            name = tag[2]
            found.tests[name.text] = Span(draft.file, name.start, name.end)
            opened["test"] = tag
            if name.text in TESTS:
                draft.replace(tag[1].start, name.end, f"macro test_{name.text}")
        elif word in ("endtest", "enddata_test") and "test" in opened:
            if opened.pop("test")[2].text in TESTS:
                draft.replace(tag[1].start, tag[1].end, "endmacro")
        elif word in ("materialization", "snapshot"):
            opened[word] = tag
            kept = found.snapshots if word == "snapshot" else found.materializations
            name = tag[2] if len(tag) > 2 else tag[1]
            kept[name.text] = Span(draft.file, name.start, name.end)
        elif word in ("endmaterialization", "endsnapshot") and word[3:] in opened:
            draft.remove(opened.pop(word[3:])[0].start, tag[-1].end)
    return found


@dataclass(slots=True)
class _Branch:
    tag: Tag
    truth: Truth


def cut_guards(draft: Draft, text: TemplateText, found: Found) -> None:
    """Keep of each `{% if %}` chain what is rendered if is_incremental() is false."""
    stack: list[list[_Branch]] = []
    for tag in text.tags:
        words = _words(tag)
        calls = [x for i, x in enumerate(tag) if _is_call(tag, i)]
        found.is_incremental += (Span(draft.file, x.start, x.end) for x in calls)
        if tag[0].kind == "block_begin" and words:
            if words[0] == "if":
                stack.append([_Branch(tag, _truth(words[1:]))])
                continue
            if words[0] in ("elif", "else", "endif") and stack:
                chain = stack[-1]
                chain.append(_Branch(tag, _truth(words[1:]) if words[0] == "elif" else "other"))
                if words[0] == "endif":
                    _cut_chain(draft, stack.pop(), found)
                continue
        for call in calls:
            _say_false(draft, tag, call, found)


def _cut_chain(draft: Draft, chain: list[_Branch], found: Found) -> None:
    *branches, end = chain
    first = branches[0]
    for branch in branches[1:] if first.truth in ("yes", "no") else branches:
        for i, lexeme in enumerate(branch.tag):
            if _is_call(branch.tag, i):
                _say_false(draft, branch.tag, lexeme, found)
    following = branches[1] if len(branches) > 1 else end
    if first.truth == "yes":
        if following is end:
            draft.remove(first.tag[0].start, end.tag[-1].end)
        elif _words(following.tag)[0] == "else":
            draft.remove(first.tag[0].start, following.tag[-1].end)
            draft.remove(end.tag[0].start, end.tag[-1].end)
        else:
            draft.replace(first.tag[0].start, following.tag[1].end, "{% if")
    elif first.truth == "no":
        draft.remove(first.tag[0].start, first.tag[-1].end)
        draft.remove(following.tag[0].start, end.tag[-1].end)


def _say_false(draft: Draft, tag: Tag, call: Lexeme, found: Found) -> None:
    index = tag.index(call)
    draft.replace(call.start, tag[index + 2].end, "false")
    found.replaced.append(Span(draft.file, call.start, call.end))


def _truth(words: Sequence[str]) -> Truth:
    """yes: is_incremental(), or that and more; no: its opposite; mixed: combined with something else."""
    plain = tuple(words)
    while len(plain) > 2 and plain[0] == "(" and plain[-1] == ")" and plain[1:4] == _CALL and plain[4:5] in ((), (")",)):
        plain = plain[1:-1]
    if "is_incremental" not in plain:
        return "other"
    if plain == _CALL:
        return "yes"
    if plain == ("not", *_CALL):
        return "no"
    if "or" in plain or "else" in plain or "if" in plain:
        return "mixed"
    at = plain.index("is_incremental")
    depth = sum((w in "([{") - (w in ")]}") for w in plain[:at] if len(w) == 1)
    alone = (at == 0 or plain[at - 1] == "and") and plain[at + 3 : at + 4] in ((), ("and",))
    return "yes" if depth == 0 and alone and plain.count("is_incremental") == 1 else "mixed"


def _words(tag: Tag) -> tuple[str, ...]:
    return tuple(x.text for x in tag[1:-1])


def _is_call(tag: Tag, index: int) -> bool:
    return tuple(x.text for x in tag[index : index + 3]) == _CALL


def macro_blocks(text: TemplateText) -> dict[str, Span]:
    """Macros and tests of a file by their name in mvbuild, from the first tag to the last."""
    blocks: dict[str, Span] = {}
    opened: list[tuple[str, int]] = []
    for tag in text.tags:
        words = _words(tag)
        if tag[0].kind != "block_begin" or not words:
            continue
        if words[0] in ("macro", "test", "data_test") and len(words) > 1:
            opened.append((words[1] if words[0] == "macro" else f"test_{words[1]}", tag[0].start))
        elif words[0] in ("endmacro", "endtest", "enddata_test") and opened:
            name, start = opened.pop()
            blocks[name] = Span(text.file, start, tag[-1].end)
    return blocks


def snapshot_bodies(text: TemplateText) -> dict[str, Span]:
    """Snapshots of a file by their name: what is between their tags."""
    found: dict[str, Span] = {}
    opened: tuple[str, int] | None = None
    for tag in text.tags:
        words = _words(tag)
        if tag[0].kind == "block_begin" and words[:1] == ("snapshot",) and len(words) > 1:
            opened = words[1], tag[-1].end
        elif tag[0].kind == "block_begin" and words[:1] == ("endsnapshot",) and opened:
            found[opened[0]] = Span(text.file, opened[1], tag[0].start)
            opened = None
    return found
