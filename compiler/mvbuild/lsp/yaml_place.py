"""a place in a YAML file that is being edited -> the keys allowed there. By indentation: such text is rarely valid YAML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field

from mvbuild.dataclass import dataclass
from mvbuild.project.key_types import Block, Key
from mvbuild.project.keys import PROJECT, PROPERTIES, TEST_ARGUMENTS, TESTS, key_of
from mvbuild.project.project_file import NAMES
from mvbuild.project.setting import EMPTY
from mvbuild.project.setting_values import OneOf
from mvbuild.project.settings import ALIASES, MODEL_SETTINGS, SEED_SETTINGS, SettingKey

_LINE = re.compile(r"^(?P<lead>\s*(?:-\s+)*)(?P<key>['\"]?[\w+.-]+['\"]?)\s*:(?:\s|$)")
_QUOTES = "'\""
_LEAD = re.compile(r"^\s*(?:-\s+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What is allowed at a place: keys with their meanings; and words, for the value of a key or an item of a list."""

    keys: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    words: tuple[str, ...] = ()
    path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Here:
    """What a path of keys refers to."""

    keys: Mapping[str, str]
    words: tuple[str, ...] = ()


def path_at(text: str, offset: int) -> tuple[tuple[str, ...], str | None]:
    """The keys above a place, from the outermost; and the key on its own line whose value it is."""
    current = text[:offset].rpartition("\n")[2]
    found = _LINE.match(current)
    above = [key for key, _ in levels_at(text, offset) if key is not None]
    return tuple(reversed(above)), found["key"].strip(_QUOTES) if found else None


def levels_at(text: str, offset: int) -> Iterator[tuple[str | None, str | None]]:
    """(the key above a mapping, the `name` in it) of the mappings around a place, from the inside out."""
    lines = text[:offset].split("\n")
    column = len(_lead(lines[-1]))
    name = None
    for line in reversed(lines[:-1]):
        match = _LINE.match(line)
        if match is None or line.lstrip().startswith("#"):
            continue
        if len(match["lead"]) < column:
            yield match["key"].strip(_QUOTES), name
            column, name = len(match["lead"]), None
        if len(match["lead"]) == column and match["key"] == "name" and name is None:
            name = line[match.end() :].partition(" #")[0].strip(" '\"") or None
    yield None, name


def _lead(line: str) -> str:
    found = _LEAD.match(line)
    return found[0] if found else ""


def expected_at(file: str, text: str, offset: int) -> Expected:
    path, key = path_at(text, offset)
    if key is not None:
        return Expected(words=_walked(file, (*path, key)).words, path=(*path, key))
    here = _walked(file, path)
    return Expected(keys=here.keys, words=here.words, path=path)


def doc_at(file: str, text: str, offset: int) -> str:
    """The meaning of the key at the cursor."""
    start = text.rfind("\n", 0, offset) + 1
    line = text[start:].partition("\n")[0]
    match = _LINE.match(line)
    if match is None or not match.start("key") <= offset - start <= match.end("key"):
        return ""
    path, _ = path_at(text, start + match.start("key"))
    name = match["key"].strip(_QUOTES)
    doc = _walked(file, path).keys.get(name) or _walked(file, path).keys.get(f"+{name}", "")
    return f"**{name}** {doc}" if doc else ""


def _walked(file: str, path: tuple[str, ...]) -> _Here:
    if file in NAMES:
        return _in_block(PROJECT, path)
    return _in_block(PROPERTIES, path)


def _in_block(block: Block, path: tuple[str, ...]) -> _Here:
    if not path:
        return _Here({name: key.doc for name, key in block.keys.items()})
    name, below = block.aliases.get(path[0], path[0]), path[1:]
    key = block.keys.get(name)
    if key is None:
        return _Here(EMPTY)
    if key.kind == "tests":
        return _in_tests(below)
    if key.kind in ("settings", "folders"):
        settings = SEED_SETTINGS if block.what == "a seed" or name == "seeds" else MODEL_SETTINGS
        return _in_settings(settings, below, plus="+" if key.kind == "folders" else "")
    if key.block is None:
        return _Here(EMPTY, _words_of(key))
    return _in_block(key.block, below[1:]) if key.kind == "named blocks" and below else _in_block(key.block, below)


def _in_tests(path: tuple[str, ...]) -> _Here:
    if not path:
        return _Here(dict.fromkeys(TESTS, "A data test."), tuple(kind for kind in TESTS if not TEST_ARGUMENTS[kind]))
    return _in_block(TESTS[path[0]], path[1:]) if path[0] in TESTS else _Here(EMPTY)


def _in_settings(settings: Mapping[str, SettingKey], path: tuple[str, ...], plus: str) -> _Here:
    for i, name in enumerate(path):
        setting = settings.get(ALIASES.get(name.removeprefix("+"), name.removeprefix("+")))
        if setting is not None and (not plus or name.startswith("+") or i == len(path) - 1):
            words = setting.read.words if isinstance(setting.read, OneOf) else _words_of(key_of(setting))
            return _Here(EMPTY, words)
    return _Here({f"{plus}{name}": setting.doc for name, setting in settings.items()})


def _words_of(key: Key) -> tuple[str, ...]:
    return ("true", "false") if key.kind == "flag" else ()
