"""The options of dbt that mvbuild does not have -> what to do instead; and those that change nothing here."""

from __future__ import annotations

from collections.abc import Mapping

RESOURCE_TYPES = ("model", "seed", "source", "test", "unit_test", "exposure")
"""What --resource-type can be."""
WITHOUT_MEANING = (
    "cache-selected-only",
    "log-cache-events",
    "macro-debugging",
    "partial-parse",
    "partial-parse-file-diff",
    "populate-cache",
    "print",
    "send-anonymous-usage-stats",
    "show-all-deprecations",
    "show-resource-report",
    "static-parser",
    "use-experimental-parser",
    "use-fast-test-edges",
    "version-check",
)
"""Flags, with and without `no-`, that are accepted, because no result depends on them: mvbuild has its own cache, and sends nothing."""

_CATALOG = "mvbuild compares with the catalog itself."
_TARGETS = "Targets are in mvbuild.yml: choose one with --target."
_LOGS = "Logs are in target/logs; --quiet and --debug decide what is printed."
_CHANGES = "mvbuild detects what changed."
_PARTS = "Limit the rows of the target with a variable: `targets: {dev: {vars: {first_day: ...}}}`."

_SELECTS = "This command selects nothing: `run`, `test`, `ls` and others do."
_FILES = "This command only prints text. If it writes files, they are below target/."

INSTEAD: Mapping[str, str] = {
    "--profile": _TARGETS,
    "--profiles-dir": _TARGETS,
    "--config-dir": _TARGETS,
    "--connection": "`mvbuild debug` always checks the catalog.",
    "--defer": f"{_CATALOG} To work without changing the real tables, use --branch.",
    "--no-defer": _CATALOG,
    "--defer-state": _CATALOG,
    "--favor-state": _CATALOG,
    "--no-favor-state": _CATALOG,
    **dict.fromkeys(("--event-time-start", "--event-time-end"), _CHANGES),
    "--sample": _PARTS,
    "--empty": f"`compile` checks names and types with schemas.lock, and unit tests run queries on few rows. {_PARTS}",
    "--no-empty": "It is never empty.",
    "--single-threaded": "Write `--threads 1`.",
    "--no-single-threaded": "Write `--threads N`.",
    "--warn-error-options": "Write --warn-error, or set the levels of lint rules under `lint:`.",
    "--write-json": "The files below target/ are always written.",
    "--no-write-json": "Write them to another folder with --target-path.",
    "--printer-width": "Lines are as wide as the terminal.",
    "--record-timing-info": "target/run_results.json has the time of each step.",
    "-r": "target/run_results.json has the time of each step.",
    **dict.fromkeys(("--log-level", "--log-level-file", "--log-format-file", "--log-path", "--log-file-max-bytes"), _LOGS),
    **dict.fromkeys(("--use-colors-file", "--no-use-colors-file"), "Files never have colours."),
    **dict.fromkeys(("--partial-parse-file-path",), "The cache is in target/."),
    **dict.fromkeys(("--upload-to-artifacts-ingest-api", "--no-upload-to-artifacts-ingest-api"), "mvbuild sends nothing."),
    **dict.fromkeys(("--introspect", "--no-introspect"), "Templates never run queries."),
    **dict.fromkeys(("--inject-ephemeral-ctes", "--no-inject-ephemeral-ctes"), "Ephemeral models are always part of the compiled SQL."),
    **dict.fromkeys(("--export-saved-queries", "--no-export-saved-queries"), "There are no saved queries."),
    **dict.fromkeys(("--include-saved-query", "--no-include-saved-query"), "There are no saved queries."),
    **dict.fromkeys(("--sqlparse",), "docs/limits.md has the limits of a query."),
    "--show": "`mvbuild show NAME` shows the rows.",
    "--static": "The site of `docs build` opens from disk.",
    "--empty-catalog": "`docs build` reads the catalog if it can.",
    **dict.fromkeys(("--compile", "--no-compile"), "The project is always compiled."),
    "--host": "The site is only served to this machine.",
    "--add-package": "Write it in packages.yml.",
    "--lock": "`mvbuild deps` writes packages.lock.",
    "--source": "Write the kind in packages.yml: local, git or tarball.",
    **dict.fromkeys(("--clean-project-files-only", "--no-clean-project-files-only"), "Only target/ is deleted."),
    "--skip-profile-setup": "`init` asks nothing.",
    "--inline-direct": "Write --inline.",
    "--args": "There are no operations.",
    **dict.fromkeys(("--deprecated-defer", "--deprecated-favor-state", "--deprecated-state"), _CATALOG),
    **dict.fromkeys(("--deprecated-print", "--deprecated-no-print"), "Leave it out."),
    **dict.fromkeys(
        ("-s", "--select", "-m", "--model", "--models", "--exclude", "--selector", "--indirect-selection", "--state"), _SELECTS
    ),
    **dict.fromkeys(("-o", "--output"), _FILES),
    **dict.fromkeys(("-x", "--fail-fast"), "Only `run` stops early; this command does everything that it can."),
    "--no-fail-fast": "It is the default.",
    **dict.fromkeys(("-f", "--full-refresh"), "`run` and `seed` have it; `retry` repeats that of the last run."),
    "--threads": "`threads:` of the target in mvbuild.yml, or `run`, `seed`, `test` and `retry --threads`.",
    **dict.fromkeys(("--project-dir", "-t", "--target", "--vars"), "`mvbuild init FOLDER` makes a project with one target, in a folder."),
}
"""Option -> what to do instead."""
