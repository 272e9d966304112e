"""`mvbuild retry`: run again what failed or was skipped, by target/run_results.json."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from mvbuild.cli.options import Options, branch_option, env, project_options, store_failures_as, store_option, vars_of
from mvbuild.diagnostics.secrets import HIDDEN

_AGAIN = {"error": "result:error", "skipped": "result:skipped", "fail": "1+result:fail"}
"""Status in the last run -> what to select. Of a failed test, the model that it tests."""
_TESTS_AGAIN = {"error": "result:error", "fail": "result:fail"}
"""The same after `mvbuild test`, which builds nothing."""


@click.command("retry")
@project_options
@branch_option
@store_option
@click.option("--threads", type=click.IntRange(1, 256), envvar=env("THREADS"), help="How many nodes to run at once.")
def command(options: Options, threads: int | None) -> int:
    """Run again what failed in the last run, and what was skipped because of it. The options are those of the last run, unless
    you give others."""
    from mvbuild.cli import test
    from mvbuild.cli.output import say
    from mvbuild.cli.run import execute

    last = _last_run(options)
    statuses = {result.get("status") for result in last.get("results", ()) if not _waits(result)}
    arguments = last.get("args", {})
    words = _TESTS_AGAIN if arguments.get("which") == "test" else _AGAIN
    select, exclude = [word for status, word in words.items() if status in statuses], ()
    if arguments.get("is_unsure"):  # a model that did not compile may belong to what was selected
        select, exclude = arguments.get("select", ()), arguments.get("exclude", ())
    elif not select:
        which = arguments.get("which")
        say(f"Nothing failed in the last {f'`mvbuild {which}`' if which else 'run'}.")
        return 0
    again = replace(
        options,
        target=options.target or arguments.get("target"),
        branch=options.branch or arguments.get("branch"),
        vars=_vars(arguments.get("vars"), options.vars),
    )
    store_failures_as(arguments.get("store_failures"))
    if arguments.get("which") == "test":
        return test.execute(again, select=select, exclude=exclude, threads=threads)
    return execute(
        again,
        select=select,
        exclude=exclude,
        threads=threads,
        full_refresh=bool(arguments.get("full_refresh")),
        fail_fast=bool(arguments.get("fail_fast")),
        atomic=arguments.get("atomic"),
        all_tests=arguments.get("which") == "build",
    )


def _vars(last: object, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """`last`: YAML, or what another program wrote there."""
    found = {**vars_of(last if isinstance(last, str) else None), **given}
    hidden = next((name for name, value in found.items() if HIDDEN in str(value) and name not in given), None)
    if hidden is not None:
        raise click.UsageError(f"The value of '{hidden}' has a secret, which was not recorded: give it again with --vars")
    return found


def _waits(result: dict[str, Any]) -> bool:
    """Whether it is a data test that was skipped: it waits for a node that failed, which is run again, or that this run did not select."""
    return result.get("status") == "skipped" and str(result.get("unique_id")).startswith("test.")


def _last_run(options: Options) -> dict[str, Any]:
    """Raises ProjectError if there was none."""
    from mvbuild.diagnostics import ProjectError, error

    path = _target(options) / "run_results.json"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        message = f"No earlier run found: cannot read {path}"
        raise ProjectError([error("no-state", message, help="Run `mvbuild run`.")]) from None
    return found if isinstance(found, dict) else {}


def _target(options: Options) -> Path:
    """The folder of the artifacts. The models are not read: they may need the variables of the last run."""
    from mvbuild.project.load import open_project

    env, path = os.environ, options.target_path
    return open_project(options.project_dir, target=options.target, vars=options.vars, env=env, target_path=path).output
