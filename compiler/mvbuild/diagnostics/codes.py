"""The table of diagnostic codes: name -> Code. docs/errors.md is generated from it."""

from __future__ import annotations

from mvbuild.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Code:
    """`title` says what the code means in general, `help` what to do unless a diagnostic has better advice."""

    title: str
    help: str


CODES: dict[str, Code] = {
    # project: files on disk
    "not-a-project": Code("The directory has no mvbuild project.", "Run `mvbuild init` there, or choose the project with --project-dir."),
    "unreadable-file": Code("A file of the project cannot be read as UTF-8 text.", "Check the file's permissions and its encoding."),
    "file-too-large": Code("A file, or the query in it, is larger than mvbuild's limit.", "Split it; docs/limits.md lists the limits."),
    "merge-conflict": Code(
        "A file has the markers of a Git conflict.",
        "Choose between the two versions, and remove the lines that begin with <<<<<<<, ======= and >>>>>>>.",
    ),
    "yaml-syntax": Code("A YAML file cannot be parsed.", "Fix the line shown; common causes are indentation and an unquoted ':' or '{'."),
    "unknown-key": Code("A YAML file or config() has an unknown key.", "Remove it, or put your own keys under `meta:`."),
    "wrong-type": Code(
        "A value has the wrong type or is out of range.", "Change the value; docs/configuration.md lists all keys and their types."
    ),
    "missing-key": Code("A required key is missing.", "Add it."),
    "duplicate-key": Code("A YAML mapping has a duplicate key.", "Remove one of the two."),
    "duplicate-name": Code("Two models, seeds or sources have the same name.", "Rename one of them: names are unique in a project."),
    "unknown-name": Code("YAML names a model, seed, column or folder that does not exist.", "Fix the name, or remove the entry."),
    "unknown-target": Code("The requested target is not declared.", "Declare it under `targets:` in mvbuild.yml."),
    "bad-packages": Code("packages.yml has something that cannot be installed.", "docs/packages.md shows what it can have."),
    "packages-not-installed": Code("The installed packages do not match packages.lock.", "Run `mvbuild deps`."),
    "package-unavailable": Code("A package cannot be fetched.", "Check its address, its revision, and the access to it."),
    "bad-seed": Code(
        "A seed file has a value that does not fit its declared column.", "Fix the value, or declare another type for the column."
    ),
    "bad-config": Code("Configuration values contradict each other.", "Change one of them."),
    "bad-target-lag": Code(
        "The target lag of an MV cannot be kept.", "An MV cannot be fresher than what it reads; docs/watch.md explains target lags."
    ),
    # parse: templates and SQL
    "template-syntax": Code("A Jinja template cannot be parsed.", "Fix the template at the line shown."),
    "undefined-name": Code(
        "A Jinja template uses a name that does not exist.", "Define it with {% set %}, as a macro or as a var, or fix its spelling."
    ),
    "template-error": Code("A Jinja template failed while it was rendered.", "Fix the expression at the line shown."),
    "template-limit": Code(
        "A Jinja template exceeds a limit on computation, output or memory.",
        "Look for an endless loop or recursion; docs/limits.md lists the limits.",
    ),
    "unsafe-template": Code(
        "A template tried to leave the sandbox.", "Templates can only use ref, source, var, env_var, config, this, target and macros."
    ),
    "missing-env-var": Code("env_var() names a variable that is not set.", "Set it, or give a default: env_var('NAME', 'default')."),
    "missing-var": Code(
        "var() names a variable that is not set.", "Set it under `vars:` in mvbuild.yml or with --vars, or give a default."
    ),
    "unresolved-ref": Code(
        "ref() names a model or seed that does not exist.", "Fix the name; `mvbuild ls` lists the project's models and seeds."
    ),
    "unresolved-source": Code(
        "source() names a source that is not declared.", "Declare it under `sources:` in a YAML file of the project."
    ),
    "not-needed": Code("A dbt construct that mvbuild does not need.", "Write the plain query; mvbuild finds the increments by itself."),
    "not-compiled": Code("A model or a data test reads a model that does not compile.", "Fix that one first."),
    "sql-syntax": Code("The SQL cannot be parsed.", "Fix the SQL; quote names that are keywords with `backticks`."),
    "many-statements": Code("A file has more than one SQL statement.", "Keep one query per file."),
    "not-a-query": Code("The SQL is not a query.", "A model is one SELECT statement (or WITH, VALUES, FROM ...)."),
    "empty-sql": Code("The file contains no SQL.", "Write a query, or delete the file."),
    "bad-time-travel": Code("A time-travel clause cannot be pinned.", "Use a literal snapshot id, branch, tag or timestamp."),
    # graph
    "cycle": Code("Models depend on each other in a cycle.", "Break the cycle: one of the models must not read the other."),
    "deprecated-model": Code(
        "A model with a deprecation date is read, or its date has passed.", "Read its latest version, or another model."
    ),
    "unknown-group": Code("A model, seed or test is in a group that is not declared.", "Declare it under `groups:` in a YAML file."),
    "private-model": Code(
        "A private model is read from outside of its group.", "Read another model of that group, or change the group or the access."
    ),
    "unknown-selector": Code("A selector matches nothing or cannot be parsed.", "List the models with `mvbuild ls`."),
    "unusable-selector": Code(
        "A selector needs something that this command does not have.", "Use another command, or select by something else."
    ),
    "bad-selectors": Code("A definition in selectors.yml cannot be resolved.", "See docs/selection.md for how to write a definition."),
    "no-state": Code(
        "There is no other version to compare the project with.",
        "Pass --state: a directory with the manifest.json of another version, or a git ref.",
    ),
    "bad-state": Code("The other version of the project cannot be read.", "Regenerate it with `mvbuild compile`, or choose another one."),
    "no-git": Code("git is needed, and is missing or failed.", "Install git, and run mvbuild in a working copy."),
    "bad-ref": Code("A git ref does not name a commit in this repository.", "Fetch it first, or name a branch, a tag or a commit."),
    # catalog
    "catalog-unreachable": Code(
        "The catalog cannot be reached.", "Check the catalog's address and credentials; `mvbuild debug` tests them."
    ),
    "catalog-error": Code("The catalog refused or failed an operation.", "Read the message; `mvbuild debug` tests the connection."),
    "no-catalog": Code(
        "A reader without a project does not say which catalog is meant.",
        "Give `mvbuild.read` and `mvbuild.sql` a `catalog=` or a `project=`.",
    ),
    "no-branches": Code(
        "The catalog does not support the branches that mvbuild needs.", "Use a catalog that keeps views, or run without --branch."
    ),
    "unknown-branch": Code("The project has no branch of that name.", "List the branches with `mvbuild branch list`."),
    "branch-outdated": Code(
        "Something that a branch was built on has changed on main.", "Run with --branch again to build on the current main, then continue."
    ),
    "not-atomic": Code(
        "The catalog cannot commit several tables at once.",
        "Run without --atomic (and without `publish: atomic`), or use a REST or a SQL catalog.",
    ),
    "not-published": Code("An atomic run published nothing, because part of it failed.", "Fix what failed, and run again."),
    "missing-table": Code("A model reads a table that does not exist.", "Create the table, or fix its name."),
    "name-collision": Code(
        "Something that mvbuild did not write already has the name of an MV, view or storage table.",
        "Rename the model with `alias:` or `namespace:`, or move the other table.",
    ),
    "other-project": Code(
        "A run replaces an MV, view or seed that another project built.",
        "If both projects are in use, rename one with `alias:` or `namespace:`. Otherwise remove the model from the other project.",
    ),
    "unknown-column": Code("A query names a column that does not exist there.", "Fix the name, or add the column."),
    "ambiguous-column": Code("A column name in a query is ambiguous.", "Qualify it with the table's name or alias."),
    "duplicate-column": Code("A model has two columns with the same name.", "Rename one of them with AS."),
    "column-count": Code("Two lists of columns differ in length.", "Give both the same number of columns, in the same order."),
    "type-mismatch": Code("Values of incompatible types are compared or combined.", "Cast one of them."),
    "broken-contract": Code(
        "A model does not have the columns that its enforced contract declares.",
        "Change the query or the contract: names, order and types must be the same. See docs/columns.md.",
    ),
    "unchecked-contract": Code(
        "A column of a model with an enforced contract cannot be checked before Spark runs.",
        "Run `mvbuild lock`, or make the column's type certain with CAST( ... AS ...).",
    ),
    "bad-lock": Code("schemas.lock cannot be read.", "Regenerate it with `mvbuild lock`."),
    "lock-out-of-date": Code("schemas.lock differs from the catalog.", "Run `mvbuild lock`, and commit the result."),
    "flawed-metadata": Code(
        "A metadata file of an MV breaks a rule of its format, in a part that no result depends on.",
        "The next refresh writes a valid file. Report the problem to the authors of the program that wrote this one.",
    ),
    "unsupported-view": Code("A child view cannot be expanded.", "Recreate the view with Spark, or read its base tables directly."),
    "unknown-catalog": Code(
        "A view of the catalog reads a table in another catalog, which the project does not know how to read.",
        "Declare a source with that `catalog:` and its `properties:`; only what reads the view is stopped.",
    ),
    "unreadable-metadata": Code(
        "The metadata of a table, view or MV cannot be read, or is invalid.",
        "Restore the file that the message names, or drop the entry; only what depends on it is blocked.",
    ),
    "unsupported-format": Code(
        "An MV cannot be stored in the configured format, or in this catalog.", "Choose another `storage: {format: ...}`."
    ),
    "format-differs": Code(
        "An MV was converted to a format other than the configured one.", "Configure `storage: {format: ...}` to match."
    ),
    "unsupported-dialect": Code(
        "A definition is not published in a SQL dialect: it is not proven that the engine returns the same rows.",
        "Rewrite what is named, set `catalog_view: storage`, or leave the dialect out of `dialects:`.",
    ),
    "stale": Code("An MV is stale, and its policy forbids serving it.", "Refresh it with `mvbuild run`, or set `when_stale:`."),
    "tests-failed": Code(
        "The newest data of an MV failed its data tests. As a warning: you get its last good refresh. As an error: there is none.",
        "Fix the data or the tests, then `mvbuild run`. `when_tests_fail:` sets what readers get until then.",
    ),
    "unknown-refresh": Code("There is no such refresh, or its data is no longer kept.", "List the refreshes with `mvbuild history`."),
    "has-dependents": Code("Other MVs or views read what you want to drop.", "Drop or change those first."),
    "bad-previous-name": Code("`previous_name` cannot be applied.", "Correct the name, or remove `previous_name`."),
    "missing-package": Code("An optional Python package is not installed.", "Install mvbuild with the extra that the message names."),
    # engine
    "no-java": Code("No usable Java was found.", "Install Java 17 or 21 and set JAVA_HOME."),
    "wrong-java": Code("The installed Java cannot run Spark with Iceberg.", "Install Java 17 or 21 and set JAVA_HOME."),
    "jars-unavailable": Code("The jars that Spark needs could not be resolved.", "Check the network, or set spark.jars in the target."),
    "spark-start": Code("Spark could not be started.", "Read the Spark log that the message names; `mvbuild debug` checks each part."),
    "query-failed": Code("Spark rejected or failed the query of a model or of a data test.", "Fix the query at the place shown."),
    "bad-column": Code(
        "A column of the result cannot be stored in an Iceberg table.", "Give it a name and a type with `CAST(... AS ...) AS name`."
    ),
    "session-object": Code(
        "The query of a model uses a variable or a temporary function of one session: sessions that read the view do not have it.",
        "Take the value from a table or from `{{ var('name') }}`, and write the function as a macro.",
    ),
    "test-failed": Code(
        "A data test found rows that violate its rule.", "Run the query shown to see the rows, then fix the data or the rule."
    ),
    "unit-test-failed": Code(
        "A model did not return the rows that a unit test expects.", "Compare the rows shown, then fix the model or the test."
    ),
    "bad-unit-test": Code(
        "A unit test cannot be run: an unknown model, input or column, or a value that its column cannot have.",
        "Correct the test at the place shown; see docs/unit-tests.md.",
    ),
    "failure-not-recorded": Code(
        "Data tests of an MV failed, and this could not be recorded in the catalog: readers may get the new data from the query.",
        "Run `mvbuild run` again when the catalog can be written.",
    ),
    "not-incremental": Code(
        "The refresh policy of an MV asks for an incremental refresh, and only a full refresh is correct.",
        "Run `mvbuild explain`, and see docs/incremental.md for what each reason means.",
    ),
    "unverifiable": Code(
        "An MV cannot be compared with its query at the snapshots that its last refresh read.",
        "Refresh it with `mvbuild run`, and verify it again.",
    ),
    "commit-conflict": Code("Another process changed the same MV at the same time.", "Run again: what is fresh by then is not rebuilt."),
    "nothing-imported": Code("No file of another tool's project could be imported.", "Fix the problems that the scorecard reports."),
    "file-exists": Code("Files that would be written already exist.", "Choose another directory, or overwrite them with --force."),
    "unwritable-target": Code("The target directory is not writable.", "Check its permissions, or choose another with --target-path."),
    "unwritable-file": Code("A file of the project cannot be written.", "Check the permissions of the file and of its directory."),
    "command-line": Code("The command line is invalid.", "See `mvbuild --help`."),
    "internal": Code("mvbuild failed with an internal error.", "Please report it, and attach the file that the message names."),
}
