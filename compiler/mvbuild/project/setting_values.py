"""Setting -> the checked value of one configuration key, or Unfit."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import date, timedelta
from typing import Any, Literal

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import did_you_mean, error
from mvbuild.project.setting import Setting
from mvbuild.source import Span

_COLUMN = r"(?:`[^`]+`|[^\W\d]\w*)(?:\.(?:`[^`]+`|[^\W\d]\w*))*"
_PLAIN = re.compile(rf"\s*({_COLUMN})\s*\Z")
_CALL = re.compile(rf"\s*([a-z]+)\s*\(\s*(?:([0-9]+)\s*,\s*)?({_COLUMN})\s*\)\s*\Z", re.IGNORECASE)
_SORT = re.compile(rf"\s*({_COLUMN})(?:\s+(asc|desc))?(?:\s+nulls\s+(first|last))?\s*\Z", re.IGNORECASE)
TRANSFORMS = {
    **{name: name for name in ("identity", "year", "month", "day", "hour", "bucket", "truncate")},
    **{f"{name}s": name for name in ("year", "month", "day", "hour")},
}
UNITS = "d|days?|h|hrs?|hours?|m|mins?|minutes?|s|secs?|seconds?|ms|milliseconds?"
_DURATION = re.compile(rf"\s*([0-9]+(?:\.[0-9]+)?)\s*({UNITS})(?![a-z])", re.IGNORECASE)
_COMPACT = re.compile(r"(?:[0-9]+(?:ms|[dhms]))+\Z", re.IGNORECASE)
_MILLISECONDS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}


class Unfit(Exception):
    """A value that its key does not allow. The message never repeats the value, which may be a secret from the environment."""

    def __init__(self, message: str, span: Span, help: str = "", code: str = "wrong-type") -> None:
        super().__init__(message)
        self.diagnostic = error(code, message, span, help=help)


def flag(key: str, setting: Setting) -> bool:
    if not isinstance(setting.value, bool):
        raise Unfit(f"'{key}' must be true or false", setting.span)
    return setting.value


@dataclass(frozen=True, slots=True)
class OneOf:
    """One word of a list. `instead` has the help for words that people try."""

    words: tuple[str, ...]
    instead: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __call__(self, key: str, setting: Setting) -> str:
        value = setting.value
        if value not in self.words:
            help = did_you_mean(value, self.words) if isinstance(value, str) else ""
            if isinstance(value, str):
                help = self.instead.get(value, help)
            raise Unfit(f"'{key}' must be one of {', '.join(self.words)}", setting.span, help)
        return str(value)


def text(key: str, setting: Setting) -> str | None:
    if setting.value is None:
        return None
    if not isinstance(setting.value, str) or not setting.value.strip():
        raise Unfit(f"'{key}' must be a string", setting.span)
    return setting.value


def namespace(key: str, setting: Setting) -> tuple[str, ...] | None:
    """`a.b`, or a list of its levels."""
    value = setting.value
    if value is None:
        return None
    parts = value.split(".") if isinstance(value, str) else value
    if not isinstance(parts, list) or not parts or not all(isinstance(p, str) and p.strip() for p in parts):
        empty = ", and it is empty" if value in ("", []) else ""
        raise Unfit(f"'{key}' must be a namespace: a string like 'mart' or 'mart.daily', or a list of its levels{empty}", setting.span)
    return tuple(p.strip() for p in parts)


def texts(key: str, setting: Setting) -> tuple[str, ...]:
    """Text, or a list of texts, without duplicates."""
    return tuple(dict.fromkeys(value for value, _ in _listed(key, setting)))


def mapping(key: str, setting: Setting) -> Mapping[str, Any]:
    if setting.value is None:
        return {}
    if not isinstance(setting.value, dict) or not all(isinstance(k, str) for k in setting.value):
        raise Unfit(f"'{key}' must be a mapping", setting.span)
    return setting.value


def text_mapping(key: str, setting: Setting) -> Mapping[str, str]:
    """A mapping whose numbers and booleans become text, as Iceberg's table properties require."""
    out: dict[str, str] = {}
    for name, value in mapping(key, setting).items():
        as_written = as_text(value)
        if as_written is None:
            raise Unfit(f"'{name}' in '{key}' must be a string, a number, true or false", setting.at(name).span)
        out[name] = as_written
    return out


def max_staleness(key: str, setting: Setting) -> timedelta | None:
    """`freshness: {max_staleness: 30m}`."""
    _known_keys(key, setting, ("max_staleness",))
    value = mapping(key, setting).get("max_staleness")
    if value is None:
        return None
    found = duration(value) if isinstance(value, str) else None
    if found is None:
        raise Unfit("'max_staleness' must be a duration like 30m, 1h30m or '2 days'", setting.at("max_staleness").span)
    return found


def target_lag(key: str, setting: Setting) -> timedelta | Literal["downstream"] | None:
    """`15m`, or `downstream`."""
    value = setting.value
    if value is None:
        return None
    if value == "downstream":
        return "downstream"
    found = duration(value) if isinstance(value, str) else None
    if found is None:
        raise Unfit(f"'{key}' must be a duration like 15m, 1h30m or '2 days', or downstream", setting.span)
    return found


def only_key(key: str, setting: Setting, name: str, reader: Callable[[str, Setting], Any]) -> Any:
    """The value of the only key that a mapping may have."""
    _known_keys(key, setting, (name,))
    return reader(name, setting.at(name)) if mapping(key, setting).get(name) is not None else None


def contract(key: str, setting: Setting) -> bool:
    """`enforced`, or dbt's `{enforced: true}`. Its `alias_types` is about types of other adapters."""
    if setting.value == "enforced":
        return True
    if isinstance(setting.value, Mapping):
        _known_keys(key, setting, ("enforced", "alias_types"))
        return flag("enforced", setting.at("enforced")) if mapping(key, setting).get("enforced") is not None else False
    raise Unfit(f"'{key}' must be enforced, or {{enforced: true}}", setting.span)


def history(key: str, setting: Setting) -> int | str:
    """A number above 0, or `all`."""
    value = setting.value
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value)
    if value == "all":
        return "all"
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise Unfit(f"'{key}' must be a number above 0, or all", setting.span)
    return value


def tolerance(key: str, setting: Setting) -> float | None:
    """A number, 0 or greater. YAML reads `1e-9` as text."""
    if setting.value is None:
        return None
    try:
        value = math.nan if isinstance(setting.value, bool) else float(setting.value)
    except (TypeError, ValueError):
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise Unfit(f"'{key}' must be a number like 1e-9, not below 0", setting.span)
    return value


_LEAST_ORPHAN_AGE = timedelta(hours=1)


def maintain(key: str, setting: Setting) -> dict[str, Any]:
    """`maintain: {compact: true, expire_after: 5d, orphans_after: 3d}`."""
    _known_keys(key, setting, ("compact", "expire_after", "orphans_after"))
    found: dict[str, Any] = {}
    for name in mapping(key, setting):
        inner = setting.at(name)
        if name == "compact":
            found[name] = flag(name, inner)
            continue
        value = duration(inner.value) if isinstance(inner.value, str) else None
        if value is None:
            raise Unfit(f"'{name}' must be a duration like 30m, 1h30m or '2 days'", inner.span)
        if name == "orphans_after" and value < _LEAST_ORPHAN_AGE:
            # A running job's files belong to no metadata until it commits.
            raise Unfit("'orphans_after' must be one hour or more: files of running jobs look like orphans", inner.span)
        found[name] = value
    return found


def _known_keys(key: str, setting: Setting, known: tuple[str, ...]) -> None:
    for name in mapping(key, setting):
        if name not in known:
            help = did_you_mean(name, known)
            raise Unfit(f"Unknown key '{name}' in '{key}'", setting.at(name).key or setting.span, help, "unknown-key")


def duration(text: str) -> timedelta | None:
    """`1h30m`, `2 days`; None if it is not a duration."""
    if _COMPACT.match(text.strip()):
        text = re.sub(r"([a-z]+)", r"\1 ", text, flags=re.IGNORECASE)
    ms, at = 0.0, 0
    while match := _DURATION.match(text, at):
        unit = match[2].lower()
        ms += float(match[1]) * _MILLISECONDS["ms" if unit.startswith(("ms", "milli")) else unit[0]]
        at = match.end()
    if at == 0 or text[at:].strip():
        return None
    try:
        return timedelta(milliseconds=ms)
    except OverflowError:
        return None


def written(value: timedelta) -> str:
    """A duration as a user would write it, to a tenth of a second: `1h 30m`, `3m 24.5s`, `45ms`."""
    ms = round(value / timedelta(milliseconds=1))
    if 0 < ms < 1000:
        return f"{ms}ms"
    minutes, tenths = divmod(round(ms / 100), 600)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [f"{number}{unit}" for number, unit in ((days, "d"), (hours, "h"), (minutes, "m")) if number]
    return " ".join([*parts, *([f"{tenths / 10:g}s"] if tenths or not parts else [])])


def partition_fields(key: str, setting: Setting) -> tuple[tuple[str, str, int | None], ...]:
    """(transform, column, width) for each."""
    return tuple(_partition_field(value, span) for value, span in _listed(key, setting, split=True))


def _partition_field(text: str, span: Span) -> tuple[str, str, int | None]:
    plain = _PLAIN.match(text)
    if plain:
        return "identity", _unquoted(plain[1]), None
    call = _CALL.match(text)
    if call is None:
        forms = "a column, year(c), month(c), day(c), hour(c), bucket(16, c) or truncate(4, c)"
        raise Unfit(f"A partition field must be {forms}", span)
    transform = TRANSFORMS.get(call[1].lower())
    if transform is None:
        raise Unfit("This is not a partition transform of Iceberg", span, did_you_mean(call[1].lower(), set(TRANSFORMS.values())))
    has_width = transform in ("bucket", "truncate")
    if has_width and not (call[2] and 0 < int(call[2][:11]) < 2**31):
        raise Unfit(f"'{transform}' takes a number above 0 and a column: {transform}(16, c)", span)
    if not has_width and call[2]:
        raise Unfit(f"'{transform}' takes only a column: {transform}(c)", span)
    return transform, _unquoted(call[3]), int(call[2]) if has_width else None


def sort_fields(key: str, setting: Setting) -> tuple[tuple[str, bool, bool], ...]:
    """(column, descending, nulls first) for each."""
    return tuple(_sort_field(value, span) for value, span in _listed(key, setting, split=True))


def _sort_field(text: str, span: Span) -> tuple[str, bool, bool]:
    match = _SORT.match(text)
    if match is None:
        raise Unfit("A sort field must be a column, optionally with 'asc' or 'desc', and 'nulls first' or 'nulls last'", span)
    descending = (match[2] or "asc").lower() == "desc"
    nulls_first = match[3].lower() == "first" if match[3] else not descending
    return _unquoted(match[1]), descending, nulls_first


def delimiter(key: str, setting: Setting) -> str:
    value = setting.value
    if not isinstance(value, str) or len(value) != 1 or value in '"\n\r':
        raise Unfit(f"'{key}' must be one character, like ',' or ';'", setting.span)
    return value


def column_types(key: str, setting: Setting) -> Mapping[str, Setting]:
    """Column -> the name of its type, with its place. seed_types checks whether the type exists."""
    for name, value in mapping(key, setting).items():
        if not isinstance(value, str):
            raise Unfit(f"'{key}' must map each column to the name of a type", setting.at(name).span)
    return {name: setting.at(name) for name in mapping(key, setting)}


def _listed(key: str, setting: Setting, *, split: bool = False) -> list[tuple[str, Span]]:
    value = setting.value
    if value is None:
        return []
    if isinstance(value, str):
        return [(part, setting.span) for part in (_split(value) if split else (value,))]
    if not isinstance(value, list):
        raise Unfit(f"'{key}' must be a string or a list of strings", setting.span)
    for i, item in enumerate(value):
        if not isinstance(item, str):
            raise Unfit(f"'{key}' must be a string or a list of strings", setting.at(i).span)
    return [(item, setting.at(i).span) for i, item in enumerate(value)]


def _split(text: str) -> list[str]:
    """Split at commas outside parentheses."""
    return re.split(r",(?![^()]*\))", text)


def _unquoted(column: str) -> str:
    return column.replace("`", "")


def as_text(value: Any) -> str | None:
    """A scalar as the text of a property: true and false in lower case, dates in ISO form; None for anything else."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return value
    if isinstance(value, (int, float)):
        return str(value)
    return value.isoformat() if isinstance(value, date) else None
