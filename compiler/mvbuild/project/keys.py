"""The table of every key in mvbuild's YAML files, from which the JSON Schemas and the reference are generated."""

from __future__ import annotations

from collections.abc import Mapping

from mvbuild.project.key_types import Block, Key, Kind
from mvbuild.project.settings import ALIASES, MODEL_SETTINGS, SEED_SETTINGS, SettingKey


def _later(*names: str) -> dict[str, str]:
    return dict.fromkeys(names, "mvbuild does not support it yet: remove it.")


TEST_ARGUMENTS: Mapping[str, Mapping[str, Key]] = {
    "not_null": {},
    "unique": {},
    "accepted_values": {
        "values": Key("constants", "The allowed values.", required=True),
        "quote": Key("flag", "false compares the values without quoting them."),
    },
    "relationships": {
        "to": Key("text", "ref('model'), source('source', 'table') or a table's name.", required=True),
        "field": Key("text", "The column of that table.", required=True),
    },
}
"""The kinds of data tests, each with its arguments; `refresh/data_test_sql.py` has the SQL of each. `to` names a table that the test reads
too, and `field` a column of it."""

_NAME = Key("text", "Its name.", required=True)
_DESCRIPTION = Key("text", "Description for the documentation. `{{ doc('name') }}` is the text of a [docs block](descriptions.md).")
_TESTS = Key("tests", f"Data tests: {', '.join(TEST_ARGUMENTS)}.")
_TAGS = Key("texts", "Tags to select by.")
_META = Key("mapping", "Your own keys; mvbuild keeps them.")
_DOCS = Key("mapping", "dbt's settings for its documentation site; mvbuild ignores them.")
_TESTED = {"tests": "data_tests"}

COLUMN_CONFIG = Block(what="a column's config", keys={"tags": _TAGS, "meta": _META})
COLUMN = Block(
    what="a column",
    keys={
        "name": _NAME,
        "description": _DESCRIPTION,
        "data_type": Key("text", "Its Spark SQL type."),
        "data_tests": _TESTS,
        "tags": _TAGS,
        "meta": _META,
        "config": Key("block", "Tags and meta.", block=COLUMN_CONFIG),
        "quote": Key("flag", "dbt's quoting; mvbuild quotes names by itself."),
    },
    aliases=_TESTED,
    unsupported=_later("constraints", "granularity", "policy_tags"),
)
_DESCRIBED = {
    "name": _NAME,
    "description": _DESCRIPTION,
    "columns": Key("blocks", "Its columns.", block=COLUMN),
    "data_tests": _TESTS,
    "tags": _TAGS,
    "meta": _META,
    "docs": _DOCS,
}
_DEPRECATED = Key("any", "The day from which it should not be read: a read of it is a [warning](model-access.md#deprecation).")
_ACCESS = Key("text", "private, protected or public: see [access](model-access.md); also below `config:`.")
_GROUP = Key("text", "Its [group](model-access.md); also below `config:`.")
_ENABLED = Key("flag", "false removes it from the project.")
VERSION_COLUMN = Block(
    what="a column of a version",
    keys={
        **COLUMN.keys,
        "name": Key("text", "Its name."),
        "include": Key("any", "In an item of its own: the columns of the model that the version has: all (the default), or a list."),
        "exclude": Key("texts", "In the same item: the columns that it does not have."),
    },
    aliases=_TESTED,
    unsupported=COLUMN.unsupported,
)
VERSION = Block(
    what="a version of a model",
    keys={
        "v": Key("scalar", "The version: a number or a word.", required=True),
        "defined_in": Key("text", "The name of its file. Default: `<model>_v<v>`; for the latest version, `<model>` too."),
        "description": _DESCRIPTION,
        "columns": Key("blocks", "What differs from the columns of the model.", block=VERSION_COLUMN),
        "data_tests": Key("tests", "Data tests in place of those of the model."),
        "access": _ACCESS,
        "deprecation_date": _DEPRECATED,
        "docs": _DOCS,
        "config": Key("settings", "Settings in addition to those of the model."),
    },
    aliases=_TESTED,
    unsupported=_later("constraints", "contract"),
)
MODEL = Block(
    what="a model",
    keys={
        **_DESCRIBED,
        "enabled": _ENABLED,
        "group": _GROUP,
        "access": _ACCESS,
        "versions": Key("blocks", "Its [versions](model-access.md#versions).", block=VERSION),
        "latest_version": Key("scalar", "The version that `ref()` without a version means. Default: the highest."),
        "deprecation_date": _DEPRECATED,
        "config": Key("settings", "Settings of the model."),
    },
    aliases=_TESTED,
    unsupported={
        **_later("constraints", "contract", "time_spine"),
        **dict.fromkeys((*(MODEL_SETTINGS.keys() - {"group", "access"}), *ALIASES), "Settings go under `config:`."),
    },
)
SEED = Block(
    what="a seed",
    keys={**_DESCRIBED, "enabled": _ENABLED, "group": _GROUP, "config": Key("settings", "Settings of the seed.")},
    aliases=_TESTED,
    unsupported=dict.fromkeys((*(SEED_SETTINGS.keys() - {"group"}), *ALIASES), "Settings go under `config:`."),
)
SOURCE_AGE = Block(
    what="an age of a source",
    keys={
        "count": Key("count", "The number of periods.", required=True),
        "period": Key("text", "minute, hour or day.", required=True),
    },
)
SOURCE_FRESHNESS = Block(
    what="`freshness` of a source",
    keys={
        "warn_after": Key("block", "The age of its snapshot that causes a warning: `{count: 12, period: hour}`.", block=SOURCE_AGE),
        "error_after": Key("block", "The age that causes an error.", block=SOURCE_AGE),
    },
    unsupported={"filter": "mvbuild takes the time of the table's snapshot, without a query: remove it."},
)
_FRESHNESS = Key("block", "How old its snapshot may be, for [`mvbuild source freshness`](sources.md).", block=SOURCE_FRESHNESS)
_LOADED_AT = "mvbuild takes the time of the table's snapshot, without a query: remove it."
_NO_QUERY = dict.fromkeys(("loaded_at_field", "loaded_at_query"), _LOADED_AT)
SOURCE_CONFIG = Block(
    what="a source's config",
    keys={"enabled": _ENABLED, "tags": _TAGS, "meta": _META, "freshness": _FRESHNESS},
    unsupported=_NO_QUERY,
)
_TYPE = Key("text", "iceberg-metastore (the default), iceberg-filesystem or deltalake-filesystem; a table's own type overrides it.")
_PROPERTIES = Key(
    "mapping",
    "PyIceberg's catalog properties for another metastore, whose name is `catalog`; for a file-system type, options of the storage.",
)
_SOURCE_LATER = {**_later("loader", "overrides", "quoting", "external"), **_NO_QUERY}
SOURCE_TABLE = Block(
    what="a table of a source",
    keys={
        **_DESCRIBED,
        "identifier": Key("text", "The table's name in the catalog. Default: its `name`."),
        "type": _TYPE,
        "path": Key("text", "Directory or URI of the table, for the two file-system types; relative to the project."),
        "properties": _PROPERTIES,
        "freshness": _FRESHNESS,
        "config": Key("block", "Enabled, tags, meta and freshness.", block=SOURCE_CONFIG),
    },
    aliases=_TESTED,
    unsupported=_SOURCE_LATER,
)
SOURCE = Block(
    what="a source",
    keys={
        "name": _NAME,
        "description": _DESCRIPTION,
        "type": _TYPE,
        "catalog": Key("text", "The catalog of its tables. Default: the target's. Any other needs `properties`."),
        "properties": _PROPERTIES,
        "namespace": Key("namespace", "The namespace of its tables. Default: the source's name."),
        "tables": Key("blocks", "Its tables.", block=SOURCE_TABLE),
        "tags": _TAGS,
        "meta": _META,
        "freshness": _FRESHNESS,
        "config": Key("block", "Enabled, tags, meta and freshness.", block=SOURCE_CONFIG),
    },
    aliases={"database": "catalog", "schema": "namespace"},
    unsupported=_SOURCE_LATER,
)
_UNIT_ROWS = {
    "rows": Key("any", "The rows: a list of mappings of columns to values, CSV, or a query."),
    "format": Key("text", "dict (the default), csv or sql."),
    "fixture": Key("text", "A file below tests/fixtures that has the rows, for csv and sql."),
}
UNIT_GIVEN = Block(
    what="an input of a unit test",
    keys={
        "input": Key("text", "ref('model'), source('source', 'table'), a table's name, or this.", required=True),
        **_UNIT_ROWS,
        "random": Key("count", "Generate this many rows from the types of the columns, the same ones each time."),
    },
)
UNIT_EXPECT = Block(what="what a unit test expects", keys=_UNIT_ROWS)
UNIT_OVERRIDES = Block(
    what="the overrides of a unit test",
    keys={
        "macros": Key("mapping", "Macro -> the value that a call of it returns."),
        "vars": Key("mapping", "Variable -> value."),
        "env_vars": Key("mapping", "Environment variable -> value."),
        "clock": Key("text", "The time that current_timestamp(), current_date() and now() return."),
    },
)
UNIT_CONFIG = Block(what="a unit test's config", keys={"enabled": _ENABLED, "tags": _TAGS, "meta": _META})
UNIT_VERSIONS = Block(
    what="the versions of a unit test",
    keys={"include": Key("constants", "Only these."), "exclude": Key("constants", "All others.")},
)
UNIT_TEST = Block(
    what="a unit test",
    keys={
        "name": _NAME,
        "model": Key("text", "The model that is tested.", required=True),
        "description": _DESCRIPTION,
        "given": Key("blocks", "The rows of the tables that it reads.", block=UNIT_GIVEN),
        "expect": Key("block", "The rows that it must return.", block=UNIT_EXPECT),
        "overrides": Key("block", "Macros, variables and the clock.", block=UNIT_OVERRIDES),
        "incremental": Key("flag", "true also refreshes the model from some of the rows to all of them, which must give the same rows."),
        "versions": Key("block", "The versions of the model that are tested. Default: all.", block=UNIT_VERSIONS),
        "config": Key("block", "Enabled, tags and meta.", block=UNIT_CONFIG),
    },
)
EXPOSURE_OWNER = Block(
    what="the owner of an exposure",
    keys={"name": Key("text", "A person or a team."), "email": Key("texts", "How to reach them.")},
)
EXPOSURE_CONFIG = Block(what="an exposure's config", keys={"enabled": _ENABLED, "tags": _TAGS, "meta": _META})
EXPOSURE = Block(
    what="an exposure",
    keys={
        "name": _NAME,
        "label": Key("text", "Its name for people."),
        "type": Key("text", "dashboard, notebook, analysis, ml or application.", required=True),
        "owner": Key("block", "Who is responsible for it.", required=True, block=EXPOSURE_OWNER),
        "depends_on": Key("texts", "What it reads: ref('model'), source('source', 'table')."),
        "url": Key("text", "Where it is."),
        "maturity": Key("text", "high, medium or low."),
        "description": _DESCRIPTION,
        "tags": _TAGS,
        "meta": _META,
        "enabled": _ENABLED,
        "config": Key("block", "Enabled, tags and meta.", block=EXPOSURE_CONFIG),
    },
)
GROUP = Block(
    what="a group",
    keys={
        "name": _NAME,
        "owner": Key("mapping", "Who is responsible for it: `name` or `email`, and your own keys.", required=True),
        "description": _DESCRIPTION,
        "config": Key("block", "Meta.", block=Block(what="a group's config", keys={"meta": _META})),
    },
)
PROPERTIES = Block(
    what="a properties file",
    keys={
        "version": Key("scalar", "2, as in dbt; optional."),
        "models": Key("blocks", "Models: descriptions, columns, tests and settings.", block=MODEL),
        "seeds": Key("blocks", "Seeds: descriptions, columns, tests and settings.", block=SEED),
        "sources": Key("blocks", "Tables that mvbuild reads but does not write.", block=SOURCE),
        "exposures": Key("blocks", "What reads the project's tables: dashboards, notebooks, applications.", block=EXPOSURE),
        "groups": Key("blocks", "Groups of models with an owner: [groups and access](model-access.md).", block=GROUP),
        "unit_tests": Key("blocks", "Rows for models to read and return: [unit tests](unit-tests.md).", block=UNIT_TEST),
    },
    unsupported=_later(
        "macros", "metrics", "anchors", "snapshots", "analyses", "semantic_models", "functions",
        "data_tests", "tests", "saved_queries",
    ),
)  # fmt: skip

SPARK = Block(
    what="`spark`",
    keys={
        "master": Key("text", "Master of the session that mvbuild starts. Default: local[*]."),
        "remote": Key("text", "Address of a Spark Connect server to use instead of a local session: sc://host:port."),
        "config": Key("mapping", "Spark properties, passed through unchanged."),
        "keep_warm": Key(
            "text",
            "How long the session that mvbuild starts stays ready for the next command, as [a warm engine](warm-engine.md): a duration "
            "like 15m. Default: it ends with the command.",
        ),
    },
)
TARGET = Block(
    what="a target",
    keys={
        "catalog": Key("mapping", "`name`, and PyIceberg's catalog properties: type, uri, warehouse, ..."),
        "namespace": Key("namespace", "Namespace of models that set none. Default: main."),
        "threads": Key("count", "How many models to build at once. Default: 4."),
        "vars": Key("mapping", "Values for var() in this target. They override those of the project."),
        "spark": Key("block", "The Spark that builds.", block=SPARK),
    },
    aliases={"schema": "namespace"},
    unsupported={
        "type": "The catalog's type goes under `catalog:`.",
        "database": "The catalog's name goes under `catalog: {name: ...}`.",
    },
)

IGNORED_OF_DBT = (
    "config-version", "profile", "clean-targets", "require-dbt-version", "analysis-paths", "snapshot-paths", "asset-paths",
    "log-path", "flags", "query-comment", "quoting", "dispatch", "packages-install-path",
)  # fmt: skip
"""Keys of dbt_project.yml that have no meaning here."""

PROJECT = Block(
    what="mvbuild.yml",
    keys={
        "name": Key("text", "The project's name: letters, digits and underscores.", required=True),
        "version": Key("scalar", "The project's own version."),
        "model-paths": Key("texts", "Folders of models. Default: [models]."),
        "seed-paths": Key("texts", "Folders of seeds. Default: [seeds]."),
        "macro-paths": Key("texts", "Folders of macros. Default: [macros]."),
        "test-paths": Key("texts", "Folders of SQL tests. Default: [tests]."),
        "docs-paths": Key("texts", "More folders of Markdown files with [docs blocks](descriptions.md). Those of models, seeds and "
        "macros are always included."),
        "target-path": Key("text", "Folder of generated files. Default: target."),
        "log-path": Key("text", "Accepted for compatibility with dbt; logs go below the target path."),
        "vars": Key("mapping", "Values for var()."),
        "target": Key("text", "The default target."),
        "targets": Key("named blocks", "Where the project can be built.", block=TARGET),
        "namespaces": Key(
            "text",
            "How the `namespace` of models and seeds becomes their namespace in the catalog. as_written (the default); prefixed: after "
            "that of the target, `dev` and `mart` become `dev_mart`, as in dbt; target: everything is in the namespace of the target.",
        ),
        "publish": Key("text", "each (the default): publish each MV when it is built; atomic: publish all in one commit at the end."),
        "lint": Key("mapping", "Levels of [lint rules](lint.md): rule -> off, info, warning or error, or `{level: ..., <option>: ...}`."),
        "models": Key("folders", "Settings of models, by folder."),
        "seeds": Key("folders", "Settings of seeds, by folder."),
    },
    unsupported={
        **dict.fromkeys(IGNORED_OF_DBT, "This key of dbt has no meaning in mvbuild: remove it."),
        **_later("sources", "data_tests", "tests", "snapshots", "exposures", "metrics", "unit_tests", "on-run-start", "on-run-end"),
        "sources": "Declare sources in the YAML files below the model paths.",
    },
)  # fmt: skip

_TEST_CONFIG_KEYS = {
    "enabled": Key("flag", "false disables the test."),
    "severity": Key("text", "error (the default) or warn."),
    "where": Key("text", "Test only rows that satisfy this condition."),
    "error_if": Key("text", "The numbers of failures that are an error, as `'> 10'` or `'between 1 and 10'`. Default: `'!= 0'`."),
    "warn_if": Key("text", "The numbers of failures that are a warning. Default: `'!= 0'`."),
    "fail_calc": Key("text", "The aggregate over its rows that is the number of failures. Default: `count(*)`."),
    "limit": Key("count", "Stop after this many rows."),
    "store_failures": Key("flag", "true writes its rows to a table, see [data tests](data-tests.md)."),
    "store_failures_as": Key("text", "table, or ephemeral for no table."),
    "tags": _TAGS,
    "meta": _META,
}
TEST_CONFIG = Block(what="a test's config", keys=_TEST_CONFIG_KEYS)


def _test_block(kind: str) -> Block:
    arguments = {name: Key(key.kind, key.doc) for name, key in TEST_ARGUMENTS[kind].items()}
    column = {"column_name": Key("text", "The tested column, for a test at the level of the model.")}
    return Block(
        what=f"the test '{kind}'",
        keys={
            **arguments,
            **column,
            "arguments": Key("block", "Its arguments.", block=Block(what=f"the arguments of '{kind}'", keys={**arguments, **column})),
            "name": Key("text", "The test's name."),
            "description": _DESCRIPTION,
            "config": Key("block", "Severity and condition.", block=TEST_CONFIG),
            **_TEST_CONFIG_KEYS,
        },
        unsupported=TEST_CONFIG.unsupported,
    )


CUSTOM_TEST = Block(
    what="a test",
    keys={
        "column_name": Key("text", "The tested column, for a test at the level of the model."),
        "arguments": Key("mapping", "Its arguments."),
        "name": Key("text", "The test's name."),
        "description": _DESCRIPTION,
        "config": Key("block", "Severity and condition.", block=TEST_CONFIG),
        **_TEST_CONFIG_KEYS,
    },
)
"""The keys of a test that the project or a package defines, beside its arguments."""
TESTS: Mapping[str, Block] = {kind: _test_block(kind) for kind in TEST_ARGUMENTS}


def key_of(setting: SettingKey) -> Key:
    """A setting as a key of the table."""
    kinds: Mapping[str, Kind] = {"flag": "flag", "namespace": "namespace", "mapping": "mapping", "texts": "texts", "any": "any"}
    return Key(kinds.get(setting.kind, "text"), setting.doc)
