"""the tables of keys -> docs/configuration.md. `python -m mvbuild.project.reference > docs/configuration.md` writes it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping

from mvbuild.project.keys import (
    COLUMN,
    MODEL,
    PROJECT,
    PROPERTIES,
    SAYS,
    SEED,
    SOURCE,
    SOURCE_CONFIG,
    SOURCE_TABLE,
    SPARK,
    TARGET,
    TEST_ARGUMENTS,
    TEST_CONFIG,
    Block,
    Key,
    key_of,
)
from mvbuild.project.settings import ALIASES, MODEL_SETTINGS, SEED_SETTINGS, SettingKey

_HEAD = """# Configuration

Everything that mvbuild reads from YAML files, and from `config()` in a model. A key that is not listed here is an error, with the
place where it stands. Keys of your own go under `meta:`.

Values in YAML may be templates with `env_var()` and `var()`: `uri: "{{ env_var('CATALOG_URI') }}"`. Secrets belong there, and
mvbuild never prints them. Templates in SQL know `ref`, `source`, `var`, `env_var`, `config`, `this`, `target` and the macros of
the project besides.

A duration is text of numbers with units: `30m`, `1h30m`, `2 days`, `1.5h`, `1d 2h`. Units are `d` (`day`, `days`), `h` (`hr`, `hrs`,
`hour`, `hours`), `m` (`min`, `mins`, `minute`, `minutes`), `s` (`sec`, `secs`, `second`, `seconds`) and `ms` (`millisecond`,
`milliseconds`).
"""
_FLAGS = """## Flags and the environment

`mvbuild COMMAND --help` lists the flags. Those that say how a project is read, selected and printed can be set by the environment
too, as `MVBUILD_<FLAG>` or, for callers that know dbt, as `DBT_<FLAG>`: `MVBUILD_TARGET=production`, `DBT_PROJECT_DIR=/srv/shop`,
`DBT_TARGET_PATH=/tmp/target`. A flag wins over the environment, and the environment over mvbuild.yml. `NO_COLOR` switches colours
off.
"""
_PROJECT = """## mvbuild.yml

The file that makes a directory a project. `mvbuild.yaml` and `dbt_project.yml` are read in its place.
"""
_TARGETS = """## Targets

`targets:` of mvbuild.yml maps names to places where the project can be built. Without targets there is one, `dev`: a catalog
called `lake` of the project's own, in `.mvbuild/` beside mvbuild.yml. `--target` chooses; else the key `target` does; else it is
`dev`, or the only one that there is.

```yaml
targets:
  production:
    catalog: {name: lake, type: rest, uri: "https://catalog.example.com", token: "{{ env_var('CATALOG_TOKEN') }}"}
    namespace: mart
```
"""
_SETTINGS = """## Settings of models

Settings stand in three places, and the nearest wins: under `models:` of mvbuild.yml for whole folders, where each has a `+`
before it; under `config:` in the model's YAML; in `config()` in its SQL. `tags` of all places are added up, `meta` and
`table_properties` are merged.

```yaml
models:
  shop:
    marts: {+namespace: mart, +tags: [report]}
```
"""
_FILES = """## YAML beside models and seeds

Any `.yml` or `.yaml` file below the model and seed paths. One file may describe many models, or each its own.
"""
_TESTS = """## Data tests

A test stands under `data_tests:` of a column: `- not_null` (no NULL in it), `- unique` (no value twice), or a mapping of its name
to its arguments. A rule of your own is a query for the rows that break it, in a `.sql` file below the test paths.
"""


def page() -> str:
    """The page of all keys."""
    sections = [
        _HEAD,
        f"{_PROJECT}\n{_table(PROJECT.keys, PROJECT.aliases)}",
        f"{_TARGETS}\n{_table(TARGET.keys, TARGET.aliases)}",
        f"### `spark:` of a target\n\n{_table(SPARK.keys)}",
        f"{_SETTINGS}\n{_table(_keys(MODEL_SETTINGS), ALIASES)}",
        f"## Settings of seeds\n\nThe same places: `seeds:` of mvbuild.yml, `config:` in YAML.\n\n{_table(_keys(SEED_SETTINGS), ALIASES)}",
        f"{_FILES}\n{_table(PROPERTIES.keys)}",
        *(_block(title, block) for title, block in _BLOCKS),
        f"{_TESTS}\n{_table(_arguments())}",
        f"Every test takes these as well, beside its arguments or below `config:`.\n\n{_table(TEST_CONFIG.keys)}",
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
