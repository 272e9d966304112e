"""The table of reasons why a part of a dbt project is changed or refused: code -> Reason. Codes are stable: scripts may rely on them."""

from __future__ import annotations

from collections.abc import Mapping

from mvbuild.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ReasonCode:
    """`title` says what the code means, `help` what to do. `refuses`: things with this reason are not imported."""

    title: str
    help: str
    refuses: bool


def _changed(title: str, help: str = "Nothing to do.") -> ReasonCode:
    return ReasonCode(title, help, refuses=False)


def _refused(title: str, help: str) -> ReasonCode:
    return ReasonCode(title, help, refuses=True)


REASONS: Mapping[str, ReasonCode] = {
    # What is changed
    "table-to-mv": _changed("`materialized: table` becomes `materialized_view`, the same query kept fresh by mvbuild."),
    "guard-removed": _changed(
        "An `is_incremental()` guard that only leaves out rows is removed: mvbuild finds the increments by itself.",
        "The table is the one that `dbt run --full-refresh` builds: with late rows that dbt skipped, and without rows that the query no "
        "longer returns and that dbt keeps.",
    ),
    "full-query": _changed(
        "dbt's table depends on when dbt ran. You asked for the query without `is_incremental()`, with `--full-query`.",
        "The table is the one that `dbt run --full-refresh` builds. Rows that dbt's runs leave out, or keep, are not as in dbt.",
    ),
    "run-window": _changed(
        "Each run of dbt reads the rows between two variables of the run, such as a day. The MV has all rows at once.",
        "The table is the one that `dbt run --full-refresh` builds. So do runs whose windows follow one another without gaps, starting "
        "from the values that you gave with `--vars`.",
    ),
    "kept-rows": _changed(
        "dbt's runs delete no rows or partitions, so its table keeps those that the query no longer returns. The MV does not.",
        "The table is the one that `dbt run --full-refresh` builds.",
    ),
    "joined-tables": _changed(
        "The guard is on one of several tables. dbt keeps what a run has joined to a row until a run reads that row again; the MV follows "
        "all tables.",
        "The table is the one that `dbt run --full-refresh` builds. To keep the joined values of an earlier time, leave the model in dbt.",
    ),
    "not-incremental": _changed("`is_incremental()` is false in a model that is not incremental, so its branch is removed."),
    "unique-key-tested": _changed(
        "mvbuild adds a test that the `unique_key` is unique: only then is the table the same as dbt's.",
        "Keep the test: a refresh that breaks it is not published. A row with NULL in its key is in the MV once; dbt inserts it in each "
        "run that reads it.",
    ),
    "snapshot-of-versions": _changed(
        "A snapshot of the newest version of each row becomes an MV of all versions, with the columns of dbt: `dbt_scd_id`, "
        "`dbt_updated_at`, `dbt_valid_from`, `dbt_valid_to`.",
        "The MV has every version that the base table has; dbt's table has those that its runs saw, and keeps those that leave the base "
        "table. mvbuild adds a test that no two versions of a key begin at once.",
    ),
    "hook-removed": _changed(
        "A hook that changes no row is removed: it optimizes the table, sets its properties or grants rights.",
        "`mvbuild maintain` keeps tables small; grant rights in the catalog.",
    ),
    "grants": _changed("`grants` grants rights on the table, which changes no row. It is removed.", "Grant the rights in the catalog."),
    "var-removed": _changed(
        "A variable whose value depends on the run is left out; the one that you gave was used.", "Pass it to `mvbuild run --vars` too."
    ),
    "adapter-in-macro": _changed(
        "A macro calls dbt's adapter somewhere. It is kept: a template that does not reach the call means the same, and one that does is "
        "refused.",
    ),
    "keyword-quoted": _changed("A column with the name of a keyword is quoted, which is the same column in Spark."),
    "same-as-dbt": _changed("A macro of the project has the name and the meaning of dbt's own."),
    "reads-table-of-dbt": _changed(
        "It reads something that is refused, whose table dbt continues to build. The table is declared as a source.",
        "Keep running that part of dbt. mvbuild must be able to read its table: an Iceberg table of the catalog.",
    ),
    "setting-removed": _changed(
        "A setting that does not affect any row is removed: file format, clustering, location, persist_docs, and those of other adapters."
    ),
    "schema-spelled-out": _changed(
        "dbt combines `target.schema` and the custom schema; mvbuild uses the name as written, so the full name is written out."
    ),
    "name-spelled-out": _changed("The schema or alias from the project's own `generate_..._name` macro is written out."),
    "types-written": _changed(
        "dbt infers the types of a seed's columns from its values; they are written out.", "Check that they are what you want."
    ),
    "null-written": _changed("A field that dbt reads as NULL (`null`, empty quotes, blanks) is left empty, which is NULL in mvbuild."),
    "property-removed": _changed("A key of the YAML that mvbuild does not support is removed; it does not affect any row.", "See the key."),
    "test-as-sql": _changed("A generic test that replaces a built-in one, or that tests an expression, becomes a SQL test."),
    "test-option-removed": _changed("An option of a test that does not affect its result is removed: the schema of stored failures."),
    "test-setting-lost": _changed(
        "The project file has a setting for all tests of a folder. mvbuild has it only at each test, so the test has the default: with "
        "`severity: warn` in the project file, its failures are errors now.",
        "Write the setting at the test.",
    ),
    "test-tag-renamed": _changed(
        "A test that replaces a built-in one: `{% test unique %}` becomes `{% macro test_unique %}`, and SQL tests call it."
    ),
    "project-prefix-removed": _changed("`project.macro()` becomes `macro()`."),
    "key-removed": _changed("A key of dbt_project.yml that has no meaning in mvbuild is removed."),
    "view-written": _changed("dbt builds a view if a model sets no materialization, and mvbuild an MV. `+materialized: view` is added."),
    "unused-path": _changed("Folder configuration for something that does not exist is removed; dbt ignores it."),
    "unknown-name": _changed("YAML for a model, seed or snapshot that does not exist is removed; dbt ignores it."),
    "package-unused": _changed("A package that the project installs and does not use is left out."),
    "run-value": _changed(
        "The query has the time or the id of the run, so each run refreshes it, as in dbt.",
        "If you do not need the value, remove it: then only what changed is refreshed.",
    ),
    "package-built-in": _changed("mvbuild has the macros and tests of the package that the project uses; the package is left out."),
    "name-macro-applied": _changed("The macro that names tables was applied; its results are written out, and it is left out."),
    "duplicate-key": _changed("A YAML mapping has a duplicate key. As in dbt the last value is used, and the others are removed."),
    # What is refused: how a model is written
    "append-keeps-rows": _refused(
        "A model that appends keeps every version of a row, and what was appended twice; a query over the source does not.",
        "If rows of the source never change, the query is the table: import it with `--full-query`.",
    ),
    "merge-without-key": _refused(
        "A merge without a `unique_key` of plain column names appends, or matches by an expression.",
        "Name the columns in `unique_key`, or import the plain query with `--full-query`.",
    ),
    "merge-partial": _refused(
        "The merge changes only a part of the columns or rows, so old values stay in the table.",
        "Write a query that gives the whole row, and remove the option.",
    ),
    "strategy": _refused(
        "The incremental strategy is not append, merge or insert_overwrite.", "Write the plain query; mvbuild finds the increments."
    ),
    "never-full-refresh": _refused(
        "`full_refresh: false` means that the table cannot be rebuilt from its query.", "Keep the table in dbt and read it as a source."
    ),
    "load-time": _refused(
        "The incremental query uses a clock, a random number or the user: each row keeps the value of the run that wrote it.",
        "Take the value from the source, or remove the column.",
    ),
    "constant-partition": _refused(
        "insert_overwrite writes one partition in each run, by a constant of the query, and keeps those of earlier runs; an MV holds one.",
        "Write a query that gives the rows of all partitions, with the partition column from the source.",
    ),
    "run-variable": _refused(
        "The incremental query depends on a variable whose value can differ in each run; dbt's table keeps the rows of earlier values.",
        "Set the variable in dbt_project.yml if it never changes, or write the query without it.",
    ),
    "disabled-by-template": _refused(
        "A template decides whether the model is enabled. It is disabled here, so its SQL was not checked.",
        "Import again with the variables or the target that enable it, or remove the model.",
    ),
    "disabled": _changed(
        "The model is disabled, so its SQL was not checked. It stays disabled.", "Enable it and import again to take it over."
    ),
    "this-used": _refused(
        "A template uses `{{ this }}` outside of a guard: the name of dbt's table, which is not the name of the MV's storage.",
        "Write the name itself, or remove it.",
    ),
    "guard-condition": _refused(
        "`is_incremental()` is used in a way that hides its guard.",
        "Use it as `{% if is_incremental() %} and ... {% endif %}`.",
    ),
    "guard-changes-query": _refused(
        "The queries with and without `is_incremental()` differ by more than conditions in a WHERE.",
        "Write one query, without the guard; mvbuild finds the increments.",
    ),
    "guard-not-lower-bound": _refused(
        "The guard is not a lower bound like `ts > (select max(ts) from {{ this }})`: the runs together may not have read every row.",
        "If the query without the guard is the whole table, import it with `--full-query`.",
    ),
    "guard-other-column": _refused(
        "The guard compares with another column of the table than the one that it filters, or that column is not in the result.",
        "If the query without the guard is the whole table, import it with `--full-query`.",
    ),
    "guard-below-aggregate": _refused(
        "The guard leaves out rows before they are grouped, ranked or limited, so dbt's table has partial results.",
        "If the query without the guard is what you want, import it with `--full-query`.",
    ),
    "guard-below-join": _refused(
        "The guard removes rows of a table that an outer join fills with NULL, or that is read more than once.",
        "If the query without the guard is what you want, import it with `--full-query`.",
    ),
    "guard-several": _refused(
        "Several guards remove rows of different tables: a row whose parts came at different times is in none of dbt's runs.",
        "If the query without the guards is what you want, import it with `--full-query`.",
    ),
    "guard-not-partition": _refused(
        "insert_overwrite replaces whole partitions, and the guard does not keep or remove whole partitions.",
        "If the query without the guard is what you want, import it with `--full-query`.",
    ),
    "overwrites-table": _refused(
        "insert_overwrite without `partition_by` replaces the whole table by the rows of the guard.",
        "If the query without the guard is what you want, import it with `--full-query`.",
    ),
    "reads-itself": _refused(
        "The model reads its own table: its result depends on what was there before.", "Write a query over other tables only."
    ),
    "hook": _refused("A hook runs statements before or after the model.", "Do its work outside of the model, and remove it."),
    "run-hook": _refused("on-run-start or on-run-end runs statements.", "Run them in your orchestrator before or after `mvbuild run`."),
    "sql-header": _refused("`sql_header` runs statements before the query.", "Set the same under `spark: config:` of the target."),
    "materialization": _refused(
        "The materialization is not table, view, incremental, ephemeral or materialized_view.", "Use one of these."
    ),
    "computed-setting": _refused("A setting is computed, and mvbuild needs a literal.", "Write the value itself."),
    "unknown-config": _refused("The configuration has a key that is neither dbt's nor mvbuild's.", "Put it under `meta`, or remove it."),
    "partition-by": _refused("`partition_by` is not a list of columns or partition transforms.", "Write it as `partition_by: [day(ts)]`."),
    "versions": _refused(
        "The latest version of the model is refused or has no file. Without it, `ref()` without a version would mean another one.",
        "Fix the latest version first.",
    ),
    # What is refused: what templates use
    "run-query": _refused(
        "A template runs a query while it is rendered; mvbuild's templates see no data.", "Write out the values, or join in SQL."
    ),
    "adapter-call": _refused("A template uses `adapter`, dbt's connection to the warehouse.", "Write the Spark SQL itself."),
    "graph-used": _refused("A template reads dbt's `graph` or `model`.", "Name the models with ref()."),
    "config-get": _refused("A template reads its own configuration with `config.get`.", "Use a var or {% set %}."),
    "jinja-name": _refused("A template uses a name that dbt has and mvbuild does not.", "Write the value, or pass it by var()."),
    "package-macro": _refused(
        "A template uses a macro of a package that mvbuild does not have.", "Write the Spark SQL itself, or a macro of your own."
    ),
    "dbt-macro": _refused("A template uses a macro of dbt that mvbuild does not have.", "Write the Spark SQL itself."),
    "macro-refused": _refused("It calls a macro that is refused.", "Fix the macro first."),
    "overrides-dbt": _refused(
        "A macro of the project replaces one of dbt's, which decides how tables are written or read.",
        "Check what it does; mvbuild writes tables itself.",
    ),
    "custom-materialization": _refused("The project defines a materialization.", "Use materialized_view, view or ephemeral."),
    "schema-macro": _refused(
        "The project's macro for schemas or aliases cannot be applied here.",
        "Write the schema and alias of each model, and remove the macro.",
    ),
    "yaml-template": _refused("A template in YAML uses more than env_var() and var().", "Write the value itself."),
    # What is refused: whole things
    "other-dialect": _refused(
        "The profile is for another database: its SQL can mean something else in Spark.", "Make the project run with dbt-spark first."
    ),
    "python-model": _refused("A Python model.", "Write it in SQL, or keep it outside and read its table as a source."),
    "snapshot": _refused("A snapshot keeps versions that its query no longer returns.", "Keep it in dbt and read its table as a source."),
    "analysis": _refused("An analysis.", "Keep the file where you need it; `mvbuild show` runs queries."),
    "exposure": _refused(
        "An exposure names something that is not imported, or has a key that mvbuild does not have.",
        "Keep it in the catalog of your BI tool, or fix what the message says.",
    ),
    "metric": _refused("A metric or another part of dbt's semantic layer.", "Write the metric as a model."),
    "unit-test": _refused(
        "A unit test names something that is not imported, or needs something that mvbuild does not have.",
        "Fix what the message says, or write a SQL test.",
    ),
    "resource": _refused("A kind of resource that mvbuild does not support.", "Remove it."),
    "package": _refused(
        "The project uses macros or tests of a package that mvbuild does not have.", "See the models; write your own macros."
    ),
    "test-of-snapshot": _refused("A test in the YAML of a snapshot that becomes an MV.", "Write it in YAML for the model of that name."),
    "unknown-test": _refused("A test that mvbuild does not have and the project does not define.", "Write a SQL test in tests/."),
    "folder-config": _refused("Folder configuration of tests, sources or versions that affects results.", "Write it at each of them."),
    "selector": _refused("YAML selectors.", "Pass the selection to --select."),
    "seed-type-unsure": _refused(
        "A seed has values whose type dbt infers by its own rules (currencies, percents, thousands).", "Declare `column_types`."
    ),
    "seed-unreadable": _refused("A seed is not valid CSV.", "Fix the row shown."),
    "unreadable": _refused("A file cannot be read.", "Fix the file."),
    "outside-project": _refused(
        "A path of dbt_project.yml leads out of the project. The import reads and writes only below the project's folder.",
        "Move or copy the files into the project, and name that folder.",
    ),
    "reads-refused": _refused("It reads something that is refused.", "Fix that first, or read the table that dbt builds as a source."),
    "does-not-compile": _refused("mvbuild does not compile it.", "Fix what the message says."),
}
