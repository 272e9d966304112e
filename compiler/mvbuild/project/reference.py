"""the tables of keys -> docs/configuration.md. `python -m mvbuild.project.reference > docs/configuration.md` writes it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping

from mvbuild.project.key_types import SAYS, Block, Key
from mvbuild.project.keys import (
    COLUMN,
    EXPOSURE,
    EXPOSURE_CONFIG,
    EXPOSURE_OWNER,
    GROUP,
    MODEL,
    PROJECT,
    PROPERTIES,
    SEED,
    SOURCE,
    SOURCE_AGE,
    SOURCE_CONFIG,
    SOURCE_FRESHNESS,
    SOURCE_TABLE,
    SPARK,
    TARGET,
    TEST_ARGUMENTS,
    TEST_CONFIG,
    UNIT_CONFIG,
    UNIT_GIVEN,
    UNIT_OVERRIDES,
    UNIT_TEST,
    UNIT_VERSIONS,
    VERSION,
    VERSION_COLUMN,
    key_of,
)
from mvbuild.project.settings import ALIASES, MODEL_SETTINGS, SEED_SETTINGS, SettingKey

_HEAD = """# Configuration

Everything that mvbuild reads from YAML files, and from `config()` in a model. A key that is not listed here is an error, reported at
its place in the file. Your own keys go under `meta:`.

Values in YAML may be templates with `env_var()`, `var()` and `target`: `uri: "{{ env_var('CATALOG_URI') }}"`,
`+namespace: "{{ target.schema }}_mart"`. Use `env_var()` for secrets; mvbuild never prints them. `target` has `name`, `catalog`,
`namespace` (`schema`), `threads` and `type`. In `targets:` there is no `target`, and no variable whose value names it. Templates in SQL
can also use `ref`, `source`, `config`, `this` and the macros of the project.

A duration is a string of numbers with units: `30m`, `1h30m`, `2 days`, `1.5h`, `1d 2h`. Units are `d` (`day`, `days`), `h` (`hr`, `hrs`,
`hour`, `hours`), `m` (`min`, `mins`, `minute`, `minutes`), `s` (`sec`, `secs`, `second`, `seconds`) and `ms` (`millisecond`,
`milliseconds`).
"""
_FLAGS = """## Flags and the environment

`mvbuild COMMAND --help` lists the flags. You can also set those that control how a project is read, selected and printed in the
environment, as `MVBUILD_<FLAG>` or, for tools that know dbt, as `DBT_<FLAG>`: `MVBUILD_TARGET=production`, `DBT_PROJECT_DIR=/srv/shop`,
`DBT_TARGET_PATH=/tmp/target`. Flags override the environment, and the environment overrides mvbuild.yml. `NO_COLOR` turns colours
off.
"""
_PROJECT = """## mvbuild.yml

The file that makes a directory a project. `mvbuild.yaml` and `dbt_project.yml` are accepted as well.
"""
_TARGETS = """## Targets

`targets:` of mvbuild.yml maps names to places where the project can be built. Without targets there is one, `dev`: a catalog
called `lake` in `.mvbuild/` beside mvbuild.yml. `--target` chooses the target; without it the key `target` does; without both it is
`dev`, or the only target.

```yaml
targets:
  production:
    catalog: {name: lake, type: rest, uri: "https://catalog.example.com", token: "{{ env_var('CATALOG_TOKEN') }}"}
    namespace: mart
  dev: {namespace: "dev_{{ env_var('USER') }}", vars: {first_day: "2026-01-01"}}
```

Any setting can depend on the target: `+enabled: "{{ target.name == 'production' }}"`, or in `vars:`
`first_day: "{{ '2026-01-01' if target.name == 'dev' else '2020-01-01' }}"`. To keep the tables of developers apart, give each target a
namespace of its own, and decide with `namespaces` what becomes of `+namespace: mart`:

```yaml
namespaces: "{{ 'as_written' if target.name == 'production' else 'prefixed' }}" # mart in production, dev_ada_mart for Ada
```

Targets in one catalog do not affect each other: only a target with the same namespace lists, renames or drops what a target built.
"""
_START = """`mvbuild run`, `build`, `test` and `verify` add up the sizes of the tables that they will read, and start a local Spark
that fits. Up to 64 MB, the JVM does not optimize code (`-XX:TieredStopAtLevel=1`), uses the serial garbage collector, and begins with a
heap of 1 GB, unless you set `spark.driver.memory`. Up to 1 MB, Spark also does not generate code, does not use adaptive execution, and
uses one shuffle partition. For so little data, compiling takes longer than it saves: these commands need about a third less processor
time.

Your own `config` takes precedence. If you set Java options (`spark.driver.extraJavaOptions`, the variable `JAVA_TOOL_OPTIONS`, or a
`spark-defaults.conf`), mvbuild does not add these. A
[warm engine](warm-engine.md), `mvbuild watch` and the [Python API](python-api.md) start Spark for tables of any size;
`mvbuild.run(..., ends_process=True)` starts it as the command does, and so do `test` and `verify`.
"""
_SETTINGS = """## Settings of models

You can configure models in three places, and the nearest wins: under `models:` of mvbuild.yml for whole folders, where each setting
starts with a `+`; under `config:` in the model's YAML; in `config()` in its SQL. A list replaces a farther one as a whole, so `[]`
clears it. Only `tags` of all places are combined; `meta`, `table_properties` and `lint` are merged by key.

```yaml
models:
  shop:
    marts: {+namespace: mart, +tags: [report]}
```
"""
_FILES = """## YAML beside models and seeds

Any `.yml` or `.yaml` file below the model and seed paths. One file may describe several models.
"""
_TESTS = """## Data tests

A test goes under `data_tests:` of a column: `- not_null` (no NULL in it), `- unique` (no value twice), or a mapping of its name
to its arguments. [Data tests](data-tests.md) shows how to write kinds of tests of your own.
"""


_OF_TESTS = """Every test also accepts these, beside its arguments or below `config:`. `arguments` can hold its arguments;
a test of a table names its column with `column_name`. A SQL test takes them in `{{ config(...) }}`, except `where`: put the condition into
its query.
"""


def page() -> str:
    """The page of all keys."""
    sections = [
        _HEAD,
        f"{_PROJECT}\n{_table(PROJECT.keys, PROJECT.aliases)}",
        f"{_TARGETS}\n{_table(TARGET.keys, TARGET.aliases)}",
        f"### `spark:` of a target\n\n{_table(SPARK.keys)}\n\n{_START}",
        f"{_SETTINGS}\n{_table(_keys(MODEL_SETTINGS), ALIASES)}",
        f"## Settings of seeds\n\nThe same places: `seeds:` of mvbuild.yml, `config:` in YAML.\n\n{_table(_keys(SEED_SETTINGS), ALIASES)}",
        f"{_FILES}\n{_table(PROPERTIES.keys)}",
        *(_block(title, block) for title, block in _BLOCKS),
        f"{_TESTS}\n{_table(_arguments())}",
        f"{_OF_TESTS}\n{_table(TEST_CONFIG.keys)}",
        _FLAGS,
    ]
    return "\n\n".join(section.strip("\n") for section in sections) + "\n"


_BLOCKS = (
    ("A model", MODEL),
    ("A seed", SEED),
    ("A column", COLUMN),
    ("A source", SOURCE),
    ("A table of a source", SOURCE_TABLE),
    ("`config:` of a source or of its table", SOURCE_CONFIG),
    ("`freshness:` of a source or of its table", SOURCE_FRESHNESS),
    ("`warn_after:` and `error_after:`", SOURCE_AGE),
    ("A version of a model", VERSION),
    ("A column of a version", VERSION_COLUMN),
    ("A group", GROUP),
    ("An exposure", EXPOSURE),
    ("`owner:` of an exposure", EXPOSURE_OWNER),
    ("`config:` of an exposure", EXPOSURE_CONFIG),
    ("A unit test", UNIT_TEST),
    ("`given:` of a unit test", UNIT_GIVEN),
    ("`overrides:` of a unit test", UNIT_OVERRIDES),
    ("`versions:` of a unit test", UNIT_VERSIONS),
    ("`config:` of a unit test", UNIT_CONFIG),
)


def _block(title: str, block: Block) -> str:
    return f"### {title}\n\n{_table(block.keys, block.aliases)}"


def _table(keys: Mapping[str, Key], aliases: Mapping[str, str] | None = None) -> str:
    rows = (_row(name, key, [a for a, of in (aliases or {}).items() if of == name]) for name, key in keys.items())
    return "\n".join(["| key | value | meaning |", "|---|---|---|", *rows])


def _row(name: str, key: Key, aliases: Iterable[str]) -> str:
    also = "".join(f" Also `{alias}`." for alias in aliases)
    required = " Required." if key.required else ""
    return f"| `{name}` | {SAYS.get(key.kind, 'any value')} | {key.doc}{required}{also} |".replace("``", "`")


def _keys(settings: Mapping[str, SettingKey]) -> dict[str, Key]:
    return {name: key_of(setting) for name, setting in settings.items()}


def _arguments() -> dict[str, Key]:
    """`accepted_values: values` and so on."""
    return {f"{test}: {name}": key for test, arguments in TEST_ARGUMENTS.items() for name, key in arguments.items()}


if __name__ == "__main__":
    sys.stdout.write(page())
