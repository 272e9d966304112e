"""The table of diagnostic codes: name -> Code. docs/errors.md is generated from it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Code:
    """`title` says what the code means in general, `help` what to do when a diagnostic brings no better advice."""

    title: str
    help: str


CODES: dict[str, Code] = {
    # project: files on disk
    "not-a-project": Code("The directory holds no mvbuild project.", "Run `mvbuild init` there, or name the project with --project-dir."),
    "unreadable-file": Code("A file of the project cannot be read as UTF-8 text.", "Check the file's permissions and its encoding."),
    "file-too-large": Code(
        "A file, or the query in it, is larger than mvbuild reads.", "Split it; docs/limits.md says how large a file may be."
    ),
    "yaml-syntax": Code(
        "A YAML file cannot be parsed.", "Mend the line that is shown; a common cause is indentation or an unquoted ':' or '{'."
    ),
    "unknown-key": Code(
        "A YAML file or config() has a key that mvbuild does not know.", "Remove it, or put keys of your own under `meta:`."
    ),
    "wrong-type": Code("A value has the wrong type or is outside what its key allows.", "Give a value of the type that is named."),
    "missing-key": Code("A required key is missing.", "Add it."),
    "duplicate-key": Code("A YAML mapping has the same key twice.", "Keep one of the two."),
    "duplicate-name": Code("Two models, seeds or sources have the same name.", "Rename one of them: names are unique in a project."),
    "unknown-name": Code("YAML describes a model, seed or column that does not exist.", "Mend the name, or remove the entry."),
    "unknown-target": Code("The target that was asked for is not declared.", "Declare it under `targets:` in mvbuild.yml."),
    "bad-seed": Code(
        "A seed file has a value that does not fit its declared column.", "Mend the value, or declare another type for the column."
    ),
    "bad-config": Code("Configuration values contradict each other.", "Change one of them."),
    # parse: templates and SQL
    "template-syntax": Code("A Jinja template cannot be parsed.", "Mend the template at the line that is shown."),
    "undefined-name": Code(
        "A Jinja template uses a name that does not exist.", "Define it with {% set %}, as a macro or as a var, or mend its spelling."
    ),
    "template-error": Code("A Jinja template failed while it was rendered.", "Mend the expression at the line that is shown."),
    "template-limit": Code(
        "A Jinja template computes, writes or holds more than a template may.",
        "Look for a loop or a recursion without end; docs/limits.md has the limits.",
    ),
    "unsafe-template": Code(
        "A template tried to leave the sandbox.", "Templates reach ref, source, var, env_var, config, this, target and macros only."
    ),
    "missing-env-var": Code("env_var() names a variable that is not set.", "Set it, or give a default: env_var('NAME', 'default')."),
    "missing-var": Code(
        "var() names a variable that is not set.", "Set it under `vars:` in mvbuild.yml or with --vars, or give a default."
    ),
    "unresolved-ref": Code(
        "ref() names a model or seed that does not exist.", "Mend the name; the project's models and seeds are listed by `mvbuild ls`."
    ),
    "unresolved-source": Code(
        "source() names a source that is not declared.", "Declare it under `sources:` in a YAML file of the project."
    ),
    "not-needed": Code("A dbt construct that mvbuild has no need of.", "Write the plain query; mvbuild finds the least work by itself."),
    "sql-syntax": Code("The SQL cannot be parsed.", "Mend the SQL; names that are keywords need `backticks`."),
    "many-statements": Code("A file has more than one SQL statement.", "Keep one query per file."),
    "not-a-query": Code("The SQL is not a query.", "A model is one SELECT statement (or WITH, VALUES, FROM ...)."),
    "empty-sql": Code("The file has no SQL in it.", "Write a query, or delete the file."),
    "bad-time-travel": Code("A time-travel clause cannot be pinned.", "Use a literal snapshot id, branch, tag or timestamp."),
    # graph
    "cycle": Code("Models depend on each other in a circle.", "Break the circle: one of the models must not read the other."),
    "unknown-selector": Code("A selector matches nothing or cannot be read.", "List the models with `mvbuild ls`."),
    "unusable-selector": Code(
        "A selector needs what this command does not have.", "Use a command that has it, or select by something else."
    ),
    "bad-selectors": Code("A definition in selectors.yml cannot be followed.", "See docs/selection.md for the forms of a definition."),
    "no-state": Code(
        "There is nothing to compare the project with.",
        "Give --state: a directory with the manifest.json of another version, or a git ref.",
    ),
    "bad-state": Code("The other version of the project cannot be read.", "Write it anew with `mvbuild compile`, or name another one."),
    "no-git": Code("git is needed, and cannot answer.", "Install git, and run mvbuild within a working copy."),
    "bad-ref": Code("A git ref names no commit that is here.", "Fetch it first, or name a branch, a tag or a commit."),
    # catalog
    "catalog-unreachable": Code(
        "The catalog cannot be reached.", "Check the catalog's address and credentials; `mvbuild debug` tests them."
    ),
    "catalog-error": Code("The catalog refused or failed an operation.", "Read the message; `mvbuild debug` tests the connection."),
    "no-branches": Code(
        "The catalog has no branches that mvbuild can build on.", "Use a catalog that keeps views, or run without --branch."
    ),
    "unknown-branch": Code("The project has no branch of that name.", "List the branches with `mvbuild branch list`."),
    "branch-outdated": Code(
        "What a branch was built on has changed on main since.", "Run with --branch again: it builds on what main is now. Then go on."
    ),
    "not-atomic": Code(
        "The catalog cannot move several tables in one commit.",
        "Run without --atomic (and without `publish: atomic`), or use a REST or a SQL catalog.",
    ),
    "not-published": Code(
        "A run that publishes everything together published nothing, because a part of it failed.", "Mend what failed, and run again."
    ),
    "missing-table": Code("A model reads a table that does not exist.", "Create the table, or mend its name."),
    "name-collision": Code(
        "The name of an MV, view or storage table is taken by something that mvbuild did not write.",
        "Rename the model with `alias:` or `namespace:`, or move the other table.",
    ),
    "unknown-column": Code("A query names a column that does not exist where it stands.", "Mend the name, or add the column."),
    "ambiguous-column": Code("A name in a query is that of several columns.", "Write the table's name or alias before it, and a dot."),
    "duplicate-column": Code("A model has two columns of one name.", "Give one of them another name with AS."),
    "column-count": Code(
        "Two lists of columns that must be of one length are not.", "Give both the same number of columns, in the same order."
    ),
    "type-mismatch": Code("Values of types that Spark never puts together are compared or computed.", "Cast one of the two."),
    "broken-contract": Code(
        "A model does not have the columns that its enforced contract declares.",
        "Change the query or the contract: names, order and types must be the same. See docs/columns.md.",
    ),
    "unchecked-contract": Code(
        "A column of a model with an enforced contract cannot be compared before Spark runs.",
        "Run `mvbuild lock`, or make the column certain with CAST( ... AS ...).",
    ),
    "bad-lock": Code("schemas.lock cannot be read.", "Write it anew with `mvbuild lock`."),
    "lock-out-of-date": Code("schemas.lock is not what the catalog has.", "Run `mvbuild lock`, and check in what it wrote."),
    "unsupported-view": Code("A child view cannot be expanded.", "Recreate the view with Spark, or read its base tables directly."),
    "unreadable-metadata": Code(
        "The metadata of a table, view or MV cannot be read, or breaks a rule of its format.",
        "Restore the file that is named, or drop the entry; only what depends on it is stopped.",
    ),
    "unsupported-format": Code(
        "An MV cannot be kept in the format, or under the catalog, that is configured.", "Choose another `storage: {format: ...}`."
    ),
    "format-differs": Code(
        "An MV was converted to another format than the project configures.", "Configure `storage: {format: ...}` to match."
    ),
    "unsupported-dialect": Code(
        "A definition cannot be written in a SQL dialect.", "Rewrite the query, or leave the dialect out of `dialects:`."
    ),
    "stale": Code("An MV is stale, and its policy is not to serve it then.", "Refresh it with `mvbuild run`, or set `when_stale:`."),
    "unknown-refresh": Code("There is no such refresh, or its data is not kept any more.", "List what there is with `mvbuild history`."),
    "has-dependents": Code("What is to be dropped is read by other MVs or views.", "Drop or change those that are named first."),
    "bad-previous-name": Code("`previous_name` cannot be followed.", "Correct the name, or remove `previous_name`."),
    "missing-package": Code("An optional Python package is needed and not installed.", "Install mvbuild with the extra that is named."),
    # engine
    "no-java": Code("No usable Java was found.", "Install Java 17 or 21 and set JAVA_HOME."),
    "wrong-java": Code("The Java that was found cannot run Spark 4.", "Install Java 17 or 21 and set JAVA_HOME."),
    "jars-unavailable": Code("The jars that Spark needs could not be resolved.", "Check the network, or set spark.jars in the target."),
    "spark-start": Code("Spark could not be started.", "Read the Spark log that is named; `mvbuild debug` checks each part."),
    "query-failed": Code("Spark refused or failed the query of a model.", "Mend the query at the place that is shown."),
    "bad-column": Code(
        "A column of the result cannot be stored in an Iceberg table.", "Give it a name and a type with `CAST(... AS ...) AS name`."
    ),
    "test-failed": Code(
        "A data test found rows that break its rule.", "Look at the rows with the query that is shown, then mend the data or the rule."
    ),
    "not-incremental": Code(
        "The refresh policy of an MV asks for an incremental refresh, and only a full one is right.",
        "See `mvbuild explain`, and docs/incremental.md for what each reason means.",
    ),
    "unverifiable": Code(
        "An MV cannot be compared with its query at the snapshots that its last refresh read.",
        "Refresh it with `mvbuild run`, and verify it again.",
    ),
    "commit-conflict": Code("Another process changed the same MV at the same time.", "Run again: what is fresh by then is not rebuilt."),
    "file-exists": Code("Files that would be written are there already.", "Choose another directory, or overwrite them with --force."),
    "unwritable-target": Code("The target directory cannot be written.", "Check its permissions, or choose another with --target-path."),
    "command-line": Code("The command line is wrong.", "See `mvbuild --help`."),
    "internal": Code("mvbuild failed in a way that it did not foresee.", "Please report it with the file that is named."),
}
