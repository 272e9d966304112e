"""`{% test name(model) %}` -> a Jinja macro `test_name`, as in dbt."""

from __future__ import annotations

from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.parser import Parser

from mvbuild.parse.libraries import TEST_PREFIX


class TestTag(Extension):
    """The tags `test` and `data_test`."""

    __test__ = False
    tags = {"test", "data_test"}  # noqa: RUF012 - Jinja's attribute

    def parse(self, parser: Parser) -> nodes.Node:
        tag = next(parser.stream)
        node = nodes.Macro(lineno=tag.lineno)
        node.name = TEST_PREFIX + parser.parse_assign_target(name_only=True).name
        parser.parse_signature(node)
        node.body = parser.parse_statements((f"name:end{tag.value}",), drop_needle=True)
        return node
