"""SettingKey -> the schema of its value, by the function that reads it; MODEL_SETTINGS, SEED_SETTINGS -> config blocks and folders."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mvbuild.lint.model import Option
from mvbuild.lint.rules import RULES
from mvbuild.lint.rules import values as options
from mvbuild.project import setting_values as read
from mvbuild.project.setting_values import TRANSFORMS, OneOf
from mvbuild.project.settings import ALIASES, FORMAT, MODEL_SETTINGS, SEED_SETTINGS, SettingKey, maintain_policy, storage_format
from mvbuild.project.table_properties import table_properties
from mvbuild.schemas.parts import (
    FILLED,
    NULL,
    SCALAR,
    Schema,
    any_case,
    described,
    either,
    listed,
    map_of,
    mapping,
    not_both,
    ref,
    text,
    words,
)

_BEGIN, _WORD = "A-Za-z_\u0080-\uffff", "0-9A-Za-z_\u0080-\uffff"
_PART = rf"(?:`[^`]+`|[{_BEGIN}][{_WORD}]*)"
_COLUMN = rf"{_PART}(?:\.{_PART})*"
_WIDE = ("bucket", "truncate")
_NARROW = [name for name in TRANSFORMS if name not in _WIDE]
_CALLS = (rf"(?:{any_case(_NARROW)})\s*\(\s*{_COLUMN}\s*\)", rf"(?:{any_case(_WIDE)})\s*\(\s*0*[1-9][0-9]*\s*,\s*{_COLUMN}\s*\)")
_PARTITION = rf"\s*(?:{_COLUMN}|{'|'.join(_CALLS)})\s*"
_NULLS = rf"(?:\s+(?:{any_case(['nulls'])})\s+(?:{any_case(['first', 'last'])}))?"
_SORT = rf"\s*{_COLUMN}(?:\s+(?:{any_case(['asc', 'desc'])}))?{_NULLS}\s*"
_UNITS = (
    *("d", "day", "days", "h", "hr", "hrs", "hour", "hours", "m", "min", "mins", "minute", "minutes"),
    *("s", "sec", "secs", "second", "seconds", "ms", "millisecond", "milliseconds"),
)
_NUMBER = r"\s*\+?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?\s*"

NAMESPACE_TEXT = r"^\s*[^.\s][^.]*(?:\.\s*[^.\s][^.]*)*$"
DURATION = either(text(rf"^\s*(?:[0-9]+(?:\.[0-9]+)?\s*(?:{any_case(_UNITS)})\s*)+$"))
_TEXTS = (text(), listed(text()), NULL)
_MAYBE = {"anyOf": [SCALAR, NULL]}
_LEVELS: Schema = {"enum": ["off", "info", "warning", "error", False]}

_READERS: Mapping[Callable[..., Any], Schema] = {
    read.flag: either({"type": "boolean"}),
    read.text: {"anyOf": [text(FILLED), NULL]},
    read.namespace: either(text(NAMESPACE_TEXT), listed(text(FILLED), minItems=1), NULL),
    read.texts: either(*_TEXTS),
    read.mapping: either(mapping(), NULL),
    read.partition_fields: either(text(f"^{_PARTITION}(?:,{_PARTITION})*$"), listed(either(text(f"^{_PARTITION}$"))), NULL),
    read.sort_fields: either(text(f"^{_SORT}(?:,{_SORT})*$"), listed(either(text(f"^{_SORT}$"))), NULL),
    read.max_staleness: either(mapping({"max_staleness": {"anyOf": [DURATION, NULL]}}), NULL),
    read.target_lag: {"anyOf": [*DURATION["anyOf"], words(["downstream"]), NULL]},
    read.contract: either(words(["enforced"]), mapping({"enforced": either({"type": "boolean"}, NULL)})),
    read.history: either({"type": "integer", "minimum": 1}, text("^0*[1-9][0-9]*$"), words(["all"])),
    read.tolerance: either({"type": "number", "minimum": 0}, text(f"^{_NUMBER}$"), NULL),
    read.delimiter: text('^[^"\\n\\r]$'),
    read.column_types: either(map_of(text()), NULL),
    table_properties: either(map_of(SCALAR), NULL),
    storage_format: either(mapping({"format": either(words(FORMAT.words), NULL)}), NULL),
    maintain_policy: either(
        mapping({"compact": either({"type": "boolean"}), "expire_after": DURATION, "orphans_after": DURATION}), NULL
    ),
}  # fmt: skip

_OPTIONS: Mapping[Callable[[Any], str], Schema] = {
    options.flag: {"type": "boolean"},
    options.texts: {"anyOf": list(_TEXTS[:2])},
    options.pattern: text(),
    options.size: {"anyOf": [{"type": "number", "minimum": 0}, text(r"^\s*[0-9]+(?:\.[0-9]+)?\s*[kKmMgGtTpP]?[bB]?\s*$")]},
}


def definitions() -> dict[str, Schema]:
    """The values of all settings, and the levels of lint rules."""
    settings = {**MODEL_SETTINGS, **SEED_SETTINGS}
    return {"lint": _lint(), **{f"setting-{name}": _value(name, setting) for name, setting in settings.items()}}


def config(settings: Mapping[str, SettingKey]) -> Schema:
    """A `config:` block: keys may have dbt's `+`."""
    known = _refs(settings)
    plus = {f"^\\+{name}$": schema for name, schema in known.items()}
    return mapping(known, patternProperties=plus, **_aliases(settings))


def folder(settings: Mapping[str, SettingKey], own: str) -> Schema:
    """Settings with a `+`, and folders below. A key without a `+` is a setting, or a folder of the same name."""
    known = _refs(settings)
    other = {f"^(?!(?:{'|'.join(known)})$)[^+]": {"anyOf": [ref(own), NULL, ref("template")]}}
    bare = {f"^{name}$": {"anyOf": [schema, ref(own)]} for name, schema in known.items()}
    return mapping({f"+{name}": schema for name, schema in known.items()}, patternProperties={**other, **bare}, **_aliases(settings))


def _refs(settings: Mapping[str, SettingKey]) -> dict[str, Schema]:
    own = {name: ref(f"setting-{name}") for name in settings}
    return {**own, **{alias: own[name] for alias, name in ALIASES.items() if name in own}}


def _aliases(settings: Mapping[str, SettingKey]) -> Schema:
    pairs = [(alias, name) for alias, name in ALIASES.items() if name in settings]
    return not_both([*pairs, *((f"+{alias}", f"+{name}") for alias, name in pairs)])


def _value(name: str, setting: SettingKey) -> Schema:
    """The lint rules are known here, and not where settings are read."""
    if name == "lint":
        return described({"anyOf": [ref("lint"), NULL, ref("template")]}, setting.doc)
    if isinstance(setting.read, OneOf):
        return described(either(words(setting.read.words)), setting.doc)
    return described(_READERS[setting.read], setting.doc)


def _lint() -> Schema:
    """Rules, each with a level, or with options and a level."""
    known: dict[str, Schema] = {}
    for rule in RULES:
        inner = {"level": either(_LEVELS), **{name: _option(option) for name, option in rule.options.items()}}
        known[rule.code] = described(either(_LEVELS, mapping(inner)), f"{rule.title} {rule.level} by default.")
    return mapping(known)


def _option(option: Option) -> Schema:
    return described({**either(_OPTIONS[option.check]), "default": option.default}, option.doc)
