"""`data_tests:` in dbt's YAML -> the same tests, SQL tests for those that mvbuild has otherwise, or reasons to refuse them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from mvbuild.dbt.import_state import ImportState, TestImport
from mvbuild.dbt.read import entries_of, get, is_of_run
from mvbuild.dbt.scorecard import Item
from mvbuild.parse.dbt_utils import UNKNOWN
from mvbuild.parse.libraries import has_macro
from mvbuild.project import counting
from mvbuild.project.keys import TEST_ARGUMENTS
from mvbuild.project.yaml_spans import Entry, ListNode, MapNode, Node, ScalarNode, is_empty, plain
from mvbuild.source import Span

_OPTIONS = ("enabled", "severity", "where", "tags", "meta", *counting.SETTINGS)
_DROPPED = ("schema", "database", "alias", "group", "docs")
_OWN = ("name", "description", "config", "arguments", "column_name", *_OPTIONS, *_DROPPED)
_CALL = re.compile(r"\s*(?:ref|source|var|env_var)\s*\(.*\)\s*\Z", re.DOTALL)
_TEMPLATE = re.compile(r"\s*\{\{(.*)\}\}\s*\Z", re.DOTALL)
_REF = re.compile(r"""ref\(\s*['"]([^'"]+)['"](?:\s*,\s*(?:v|version)\s*=\s*['"]?([\w.-]+)['"]?)?\s*\)""")
_IDENTIFIER = re.compile(r"\w+\Z")
_FILE_NAME = re.compile(r"[^\w-]")
"""Characters that must not go from a test's name into a file name: a name is free text, and could lead to another folder."""


def read_tests(work: ImportState, path: str, node: Node, of: str, table: str, column: str | None) -> None:
    """The tests of a model, seed, source table or column."""
    for key in ("data_tests", "tests"):
        tests = get(node, key)
        for item in tests.items if isinstance(tests, ListNode) else ():
            _test(work, path, item, of, table, column)


def _test(work: ImportState, path: str, node: Node, of: str, table: str, column: str | None) -> None:
    kind, place, arguments = _kind(node)
    if kind is None:
        work.item("test", "?", node.span).add("unknown-test", "This is not a test", node.span)
        work.remove(path, node)
        return
    values, config = _values(arguments)
    column = column or (str(values["column_name"]) if values.get("column_name") is not None else None)
    name = "_".join(filter(None, (kind, of.partition(".")[2].replace(".", "_"), re.sub(r"\W+", "_", column or ""))))
    test = TestImport(item=work.item("test", name, place), node=id(node), whole=node.span, kind=kind, of=of, settings=frozenset(config))
    work.generic_tests.append(test)
    _options(work, path, arguments, test.item, config)
    _judge(work, test, kind, values, config, table, column)
    if kind == "unique" and column and not any(_weakens(key, config.get(key)) for key in ("where", "severity", "enabled")):
        test.unique = column.strip("`").lower()
    if test.item.verdict == "refused" or test.sql:
        work.remove(path, node)


def _weakens(key: str, value: Any) -> bool:
    """Whether an option allows rows with equal keys: only an error about all rows prevents them from being published."""
    return {"where": value is not None, "severity": str(value or "error").lower() != "error", "enabled": value not in (None, True)}[key]


def _judge(
    work: ImportState,
    test: TestImport,
    kind: str,
    values: dict[str, Any],
    config: dict[str, Any],
    table: str,
    column: str | None,
) -> None:
    macro = f"test_{kind}"
    library, _, name = kind.rpartition(".")
    if macro in work.macros:
        if work.macro_items[macro].verdict == "refused":
            test.item.add("macro-refused", f"The test '{kind}' of the project is refused")
        elif kind in work.own_tests:
            _kept(test, values)
        else:
            _as_sql(test, macro, values, config, table, column)
    elif has_macro(library, f"test_{name}"):
        if name == "equality" and not values.get("compare_columns"):
            test.item.add("package-macro", f"'{kind}' reads the columns of the tables", help=UNKNOWN[name])
        else:
            _kept(test, values)
    elif kind not in TEST_ARGUMENTS:
        code = "package-macro" if "." in kind else "unknown-test"
        message = f"'{kind}' is a test of a package" if "." in kind else f"Unknown test '{kind}'"
        test.item.add(code, message, help="Write a SQL test in tests/ that returns the rows that violate the rule.")
    elif column is not None and not _IDENTIFIER.fullmatch(column.strip("`")):
        _expression(test, kind, config, table, column)
    elif kind == "relationships":
        _reads(test, str(values.get("to") or ""))


def _options(work: ImportState, path: str, arguments: MapNode | None, item: Item, config: dict[str, Any]) -> None:
    for block in (arguments, get(arguments, "config")):
        for entry in entries_of(block):
            if entry.key in _DROPPED or _is_lost(entry):
                item.add("test-option-removed", f"'{entry.key}' is removed", entry.span)
                work.remove(path, entry)
                config.pop(entry.key, None)
            elif entry.key in _OPTIONS and is_of_run(plain(work.project.rendered(entry.node))):
                item.add("yaml-template", f"'{entry.key}' has a template", entry.span)


def _is_lost(entry: Entry) -> bool:
    """Whether mvbuild does not have this setting of how failures are counted and stored: one without a value, or a view of them."""
    if entry.key not in counting.SETTINGS:
        return False
    is_view = entry.key == "store_failures_as" and plain(entry.node) == "view"
    return is_empty(entry.node) or is_view


def _kept(test: TestImport, values: dict[str, Any]) -> None:
    """A test that stays in YAML, and what its arguments read."""
    for text in _texts(values):
        _reads(test, text)


def _reads(test: TestImport, text: str) -> None:
    """Add what the calls of ref() in a text read."""
    for name, version in _REF.findall(text):
        test.reads[f"{name}.v{version}".lower() if version else name.lower()] = test.item.span


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)
    elif isinstance(value, str):
        yield value


def _as_sql(test: TestImport, macro: str, values: dict[str, Any], config: dict[str, Any], table: str, column: str | None) -> None:
    try:
        given = {k: _literal(v) for k, v in values.items() if k != "column_name"}
    except ValueError:
        test.item.add("yaml-template", "An argument of the test has a template")
        return
    where = config.get("where")
    if is_of_run(where):
        test.item.add("yaml-template", "'where' has a template")
    model = f'"(select * from " ~ {table} ~ " where " ~ {json.dumps(str(where))} ~ ") dbt_subquery"' if where else table
    arguments = {"model": model, **({"column_name": json.dumps(column)} if column else {}), **given}
    call = f"{macro}({', '.join(f'{k}={v}' for k, v in arguments.items())})"
    _sql(test, config, f"{{{{ {call} }}}}\n")


def _expression(test: TestImport, kind: str, config: dict[str, Any], table: str, column: str) -> None:
    """A built-in test of an expression: the query that dbt runs for it."""
    if kind not in ("unique", "not_null") or "{{" in column:
        test.item.add("unknown-test", f"mvbuild has no test '{kind}' for expressions")
        return
    read = f"{{{{ {table} }}}}"
    condition = f" and ({config['where']})" if config.get("where") else ""
    if kind == "not_null":
        query = f"select *\nfrom {read}\nwhere ({column}) is null{condition}\n"
    else:
        query = f"select {column} as unique_field, count(*) as n_records\nfrom {read}\nwhere ({column}) is not null{condition}\n"
        query += f"group by {column}\nhaving count(*) > 1\n"
    _sql(test, config, query)


def _sql(test: TestImport, config: dict[str, Any], query: str) -> None:
    settings = {key: config[key] for key in ("enabled", "severity", *counting.SETTINGS) if config.get(key) is not None}
    head = f"{{{{ config({', '.join(f'{key}={_literal(value)}' for key, value in settings.items())}) }}}}\n" if settings else ""
    test.sql = (f"{_FILE_NAME.sub('_', test.item.name)}.sql", head + query)
    test.item.add("test-as-sql", "The test becomes a SQL test")
    _reads(test, query)


def _kind(node: Node) -> tuple[str | None, Span, MapNode | None]:
    if isinstance(node, ScalarNode) and isinstance(node.value, str):
        return node.value, node.span, None
    if isinstance(node, MapNode):
        named = node.get("test_name")
        if named and isinstance(named.node, ScalarNode):
            return str(named.node.value), named.node.span, node
        tests: list[Entry] = [e for e in node.entries if e.key not in ("name", "config", "description")]
        if len(tests) == 1:
            entry = tests[0]
            return entry.key, entry.span, entry.node if isinstance(entry.node, MapNode) else None
    return None, node.span, None


def _values(arguments: MapNode | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arguments of a test, and its options."""
    given = plain(arguments) if arguments else {}
    inner = given.get("arguments")
    nested: dict[str, Any] = inner if isinstance(inner, dict) else {}
    config = {k: v for k, v in given.items() if k in _OPTIONS}
    config |= given["config"] if isinstance(given.get("config"), dict) else {}
    values = {**{k: v for k, v in given.items() if k not in _OWN or k == "column_name"}, **nested}
    values.pop("test_name", None)
    return values, config


def _literal(value: Any) -> str:
    """A value as a Jinja literal. Raises ValueError for templates that are only a part of a text."""
    if isinstance(value, str):
        template = _TEMPLATE.match(value)
        if template and value.count("{{") == 1:
            return template[1].strip()
        if "{{" in value or "{%" in value:
            raise ValueError(value)
        return value.strip() if _CALL.match(value) else json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(str(k), ensure_ascii=False)}: {_literal(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_literal(v) for v in value) + "]"
    if value is None or isinstance(value, bool):
        return {None: "none", True: "true", False: "false"}[value]
    return str(value) if isinstance(value, (int, float)) else json.dumps(str(value))
