"""Models -> what their YAML lacks: descriptions and data tests."""

from __future__ import annotations

from collections.abc import Iterator

from mvbuild.graph.model import ModelNode
from mvbuild.lint.facts import Facts
from mvbuild.lint.model import Found, Option, Options, Rule
from mvbuild.lint.rules.values import flag

_CUSTOMERS = "SELECT id, name FROM {{ ref('customers') }}\n"


def description(facts: Facts, node: ModelNode, options: Options) -> Iterator[Found]:
    properties = node.model.properties
    place = f"in {properties.patch_path}" if properties.patch_path else "in a YAML file beside the model"
    if not properties.description.strip():
        message = f"'{node.model.name}' has no description"
        yield Found(message=message, span=node.model.file.line_span(1), help=f"Write `description:` {place}.", of_file=True)
    if not options["columns"]:
        return
    described = {column.name.lower() for column in properties.columns if column.description.strip()}
    known = facts.columns.get(node.id)
    names = [column.name for column in known] if known else [column.name for column in properties.columns]
    missing = [name for name in names if name.lower() not in described]
    if missing:
        listed = ", ".join(f"'{name}'" for name in missing)
        message = f"{len(missing)} of the columns of '{node.model.name}' {'has' if len(missing) == 1 else 'have'} no description: {listed}"
        yield Found(message=message, span=node.model.file.line_span(1), help=f"Write `columns:` with `description:` {place}.", of_file=True)


def tests(facts: Facts, node: ModelNode, options: Options) -> Iterator[Found]:  # noqa: ARG001
    if node.materialized == "ephemeral" or node.id in facts.tested:
        return
    message = f"'{node.model.name}' has no data test"
    yield Found(message=message, span=node.model.file.line_span(1), of_file=True)


DESCRIPTION = Rule(
    code="missing-description",
    level="warning",
    title="A model has no description.",
    why="People who find the table in the catalog see its description.",
    help="Write `description:` in a YAML file beside the model.",
    check=description,
    options={"columns": Option(default=False, doc="true: every column needs a description too.", check=flag)},
    wrong={"models/names.sql": _CUSTOMERS, "models/names.yml": "models: [{name: names}]\n"},
    right={"models/names.sql": _CUSTOMERS, "models/names.yml": "models: [{name: names, description: Names of customers.}]\n"},
)
TESTS = Rule(
    code="missing-tests",
    level="warning",
    title="A model has no data test.",
    why=(
        "The tests of an MV run before its new rows are published: without a test, anything the query returns is published. Ignores "
        "ephemeral models; SQL tests that read the model count."
    ),
    help="Write `data_tests:` in a YAML file beside the model, at least `unique` and `not_null` for its key.",
    check=tests,
    wrong={"models/names.sql": _CUSTOMERS},
    right={
        "models/names.sql": _CUSTOMERS,
        "models/names.yml": "models: [{name: names, columns: [{name: id, data_tests: [not_null, unique]}]}]\n",
    },
)
