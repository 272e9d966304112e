"""files of a project -> what lint finds in it, as (code, line, column, text under the carets)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from mvbuild.graph.model import Graph
from mvbuild.lint.check import Report, lint
from mvbuild.lint.facts import Facts
from mvbuild.lint.fixing import Fixed, fix_all
from mvbuild.lint.known_columns import known_columns
from mvbuild.lint.model import Finding
from mvbuild.selection.select import select
from unit.worlds import compiled, write_project

SHOP = {
    "mvbuild.yml": "name: shop\n",
    "seeds/customers.csv": "id,name,country\n1,Anna,DE\n2,Ben,NL\n",
    "seeds/orders.csv": "id,customer_id,day,amount,note\n1,1,2026-01-01,10.00,a\n2,1,2026-01-02,20.00,b\n",
    "seeds/seeds.yml": """
seeds:
  - {name: customers, columns: [{name: id, data_type: int}]}
  - name: orders
    columns:
      - {name: id, data_type: int}
      - {name: customer_id, data_type: int}
      - {name: day, data_type: date}
      - {name: amount, data_type: 'decimal(10, 2)'}
""",
}
"""Seeds customers(id int, name, country) and orders(id int, customer_id int, day date, amount decimal, note)."""
QUIET = {"mvbuild.yml": "name: shop\nlint: {missing-description: off, missing-tests: off}\n"}


def shop(root: Path, files: Mapping[str, str]) -> Graph:
    return compiled(root, {**SHOP, **files})


def report(graph: Graph, *, rules: Collection[str] = (), include: Collection[str] = (), world: Any = None) -> Report:
    chosen, _ = select(graph, include, ())
    facts = Facts(graph=graph, selected=chosen, columns=known_columns(graph, chosen, world), world=world)
    return lint(facts, rules=rules, whole=not include)


def findings(root: Path, files: Mapping[str, str], *rules: str) -> tuple[Finding, ...]:
    return report(shop(root, files), rules=rules).findings


def found(root: Path, files: Mapping[str, str], *rules: str) -> list[tuple[str, int, str]]:
    """(code, line, text) of each finding."""
    return [(f.code, f.span.position[0], f.span.text) for f in findings(root, files, *rules)]


def of_model(root: Path, sql: str, *rules: str) -> list[tuple[int, str]]:
    """(line, text) of each finding in one model."""
    return [(line, text) for _, line, text in found(root, {**QUIET, "models/m.sql": sql}, *rules)]


def fixed(root: Path, files: Mapping[str, str], *rules: str) -> Fixed:
    graph = shop(root, files)
    return fix_all(graph, lambda g: report(g, rules=rules).findings, lambda: compiled(root), {})


def fixed_model(root: Path, sql: str, *rules: str) -> str:
    """The text of one model after --fix."""
    write_project(root, {**SHOP, **QUIET, "models/m.sql": sql})
    fixed(root, {}, *rules)
    return (root / "models/m.sql").read_text(encoding="utf-8")
