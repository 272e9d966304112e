"""`data_tests:` of a model, seed, source table or column -> DataTests."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import date
from hashlib import md5
from typing import Any, Literal, cast

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, Note, error
from mvbuild.project.counting import SETTINGS, counting_of, problem_of
from mvbuild.project.key_types import SAYS, Block, Key, check
from mvbuild.project.keys import CUSTOM_TEST, TEST_ARGUMENTS, TESTS
from mvbuild.project.loaded import DataTest
from mvbuild.project.table_calls import names_a_table
from mvbuild.project.yaml_spans import Entry, ListNode, MapNode, Node, ScalarNode, is_empty, plain
from mvbuild.source import Span

_LONGEST = 64
_RENDERED = ("severity", "enabled", "tags", "meta", *SETTINGS)


@dataclass(frozen=True, slots=True)
class Tested:
    """What the tests are of, as their names spell it: prefix "" and a model's name, or "source_" and `source_table`."""

    prefix: str
    name: str


def read_tests(node: Node | None, tested: Tested, column: str | None, report: list[Diagnostic]) -> Iterator[DataTest]:
    """The tests of a column or, with `column` None, those of the table, which name a column each."""
    for item in node.items if isinstance(node, ListNode) else ():
        found = _kind_of(item, report)
        if found:
            kind, span, arguments = found
            test = _test(kind, span, arguments, tested, column, report)
            if test:
                yield test


def told_apart(tests: Iterable[DataTest], tested: Tested, report: list[Diagnostic]) -> Iterator[DataTest]:
    """The tests with different names. Names that are made of the arguments leave out punctuation, so other arguments can make the same one:
    the second test gets a hash of its arguments. Two tests that do the same, or that YAML gives one name, are an error."""
    first: dict[str, DataTest] = {}
    for test in tests:
        other = first.setdefault(test.name, test)
        is_given = test.name != _name(test.kind, tested, test.column, test.arguments)
        if other is not test and not is_given and test.arguments != other.arguments:
            test = replace(test, name=_hashed(test.name, repr(sorted(test.arguments.items()))))
            other = first.setdefault(test.name, test)
        if other is not test:
            notes = (Note(message="first defined here", span=other.span),)
            help = "Remove one of them, or give it another `name:`."
            report.append(error("duplicate-name", f"Duplicate test '{test.name}'", test.span, help=help, notes=notes))
        yield test


def with_settings(node: Node, render: Callable[[Node], Node]) -> Node:
    """The tree of a file with the templates in settings of tests rendered. Those in their arguments are rendered where they are used."""
    if isinstance(node, ListNode):
        items = tuple(with_settings(item, render) for item in node.items)
        return node if all(new is old for new, old in zip(items, node.items, strict=True)) else replace(node, items=items)
    if not isinstance(node, MapNode):
        return node
    return _changed(node, lambda e: _of_tests(e.node, render) if e.key in ("data_tests", "tests") else with_settings(e.node, render))


def _of_tests(node: Node, render: Callable[[Node], Node]) -> Node:
    """The list of the tests of something."""

    def settings(entry: Entry) -> Node:
        return _changed(entry.node, settings) if entry.key == "config" else render(entry.node) if entry.key in _RENDERED else entry.node

    if not isinstance(node, ListNode):
        return node
    items = tuple(_changed(item, lambda kind: _changed(kind.node, settings)) for item in node.items)
    return node if all(new is old for new, old in zip(items, node.items, strict=True)) else replace(node, items=items)


def _changed(node: Node, change: Callable[[Entry], Node]) -> Node:
    """A mapping with other values; the same one if none is another."""
    if not isinstance(node, MapNode):
        return node
    entries = tuple(e if (new := change(e)) is e.node else replace(e, node=new) for e in node.entries)
    return node if all(new is old for new, old in zip(entries, node.entries, strict=True)) else replace(node, entries=entries)


def _kind_of(item: Node, report: list[Diagnostic]) -> tuple[str, Span, MapNode | None] | None:
    if isinstance(item, ScalarNode) and isinstance(item.value, str):
        kind, span, arguments = item.value, item.span, None
    elif isinstance(item, MapNode) and len(item.entries) == 1:
        entry = item.entries[0]
        kind, span = entry.key, entry.span
        if not isinstance(entry.node, MapNode) and not is_empty(entry.node):
            report.append(error("wrong-type", f"The arguments of the test '{kind}' must be a mapping", entry.node.span))
            return None
        arguments = entry.node if isinstance(entry.node, MapNode) else None
    else:
        help = "Write `- unique`, or `- accepted_values:` with its arguments indented below it."
        report.append(error("wrong-type", "A test must be a name, or a mapping of one name to its arguments", item.span, help=help))
        return None
    return kind, span, arguments


def _block_of(kind: str, node: MapNode) -> Block:
    """The keys of a test; of one that the project or a package defines, any argument, which `custom_tests` checks."""
    if kind in TESTS:
        return TESTS[kind]
    own = (entry.key for entry in node.entries if entry.key not in CUSTOM_TEST.keys)
    return replace(CUSTOM_TEST, what=f"the test '{kind}'", keys={**CUSTOM_TEST.keys, **dict.fromkeys(own, Key("any", ""))})


def _arguments(kind: str, given: dict[str, Any], nested: dict[str, Any]) -> dict[str, Any]:
    if kind in TESTS:
        return {k: _constant(v) for k, v in {**given, **nested}.items() if k in TEST_ARGUMENTS[kind]}
    beside = {k: v for k, v in given.items() if k not in CUSTOM_TEST.keys}
    return {k: _constant(v) for k, v in {**beside, **nested}.items() if k != "column_name"}


def _test(kind: str, span: Span, node: MapNode | None, tested: Tested, column: str | None, report: list[Diagnostic]) -> DataTest | None:
    wrong = list(check(node, _block_of(kind, node))) if node else []
    given = plain(node) if node else {}
    nested = given.get("arguments") or {}
    config = {**given, **(given.get("config") or {})} if not wrong else {}
    arguments = _arguments(kind, given, nested) if not wrong else {}
    if not wrong:
        column = column or {**given, **nested}.get("column_name") or ("" if kind not in TESTS else None)
        wrong = list(_problems(kind, span, node, arguments, config, column))
    if wrong or column is None:
        report.extend(wrong)
        return None
    if config.get("enabled") is False:
        return None
    return DataTest(
        kind=kind,
        column=column,
        arguments=arguments,
        severity=cast("Literal['error', 'warn']", (config.get("severity") or "error").lower()),
        where=config.get("where"),
        name=given.get("name") or _name(kind, tested, column, arguments),
        counting=counting_of(config),
        tags=_tags(config.get("tags")),
        meta=config.get("meta") or {},
        span=span,
        places={key: _place(node, key, span) for key in arguments},
    )


def _problems(
    kind: str, span: Span, node: MapNode | None, arguments: dict[str, Any], config: dict[str, Any], column: str | None
) -> Iterator[Diagnostic]:
    for name, key in TEST_ARGUMENTS.get(kind, {}).items():
        if key.required and arguments.get(name) is None:
            yield error("missing-key", f"The test '{kind}' needs '{name}'", span)
        elif key.kind == "constants" and arguments.get(name) is not None and not _are_constants(arguments[name]):
            yield error("wrong-type", f"'{name}' must be {SAYS[key.kind]}", _place(node, name, span))
    if kind in TESTS and isinstance(arguments.get("to"), str) and not names_a_table(arguments["to"]):
        help = "Write ref('a_model'), source('a_source', 'a_table'), or the name of a table."
        yield error("bad-config", "'to' must name a table", _place(node, "to", span), help=help)
    if (config.get("severity") or "error").lower() not in ("error", "warn"):
        yield error("wrong-type", "'severity' must be error or warn", _place(node, "severity", span))
    for name in SETTINGS:
        problem = problem_of(name, config[name]) if config.get(name) is not None else ""
        if problem:
            yield error("wrong-type", problem, _place(node, name, span))
    if column is None:
        help = "Move the test to the column, or name the column: `column_name: id`."
        yield error("missing-key", f"The test '{kind}' needs a column", span, help=help)


def _tags(value: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(tag) for tag in (value if isinstance(value, list) else [value] if value else [])))


def _are_constants(values: Any) -> bool:
    return isinstance(values, list) and bool(values) and all(v is not None and not isinstance(v, (list, dict)) for v in values)


def _constant(value: Any) -> Any:
    """Dates as the text that SQL compares with."""
    if isinstance(value, list):
        return [_constant(item) for item in value]
    return value.isoformat() if isinstance(value, date) else value


def _place(node: MapNode | None, key: str, default: Span) -> Span:
    """Where a key's value is, also below `config` and `arguments`."""
    for entry in node.entries if node else ():
        if entry.key == key:
            return entry.node.span
        if entry.key in ("config", "arguments") and isinstance(entry.node, MapNode) and (inner := entry.node.get(key)):
            return inner.node.span
    return default


def _name(kind: str, tested: Tested, column: str, arguments: Mapping[str, Any]) -> str:
    """dbt's name: kind, table, and the arguments in the order of their keys."""
    flat = [column] if column else []
    for key in sorted(arguments):
        value = arguments[key]
        flat.extend(str(v) for v in (value if isinstance(value, list) else [value]))
    clean = "__".join(re.sub(r"[^0-9a-zA-Z_]+", "_", part) for part in flat)
    whole = f"{tested.prefix}{kind.replace('.', '_')}_{tested.name}_{clean}"
    # As in dbt, so that a table of its failures has a name that every catalog accepts.
    return whole if kind in TESTS or len(whole) < _LONGEST else _hashed(whole)


def _hashed(name: str, more: str = "") -> str:
    return f"{name[:30]}_{md5((name + more).encode(), usedforsecurity=False).hexdigest()}"
