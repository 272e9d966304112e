"""ModelConfig <-> the properties by which a view shows its serving policy to readers without the project."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta

from mvbuild.project.settings import ModelConfig

MAX_STALENESS = "mvbuild.max-staleness-ms"
WHEN_STALE = "mvbuild.when-stale"
WHEN_TESTS_FAIL = "mvbuild.when-tests-fail"
SERVE_UNKNOWN = "mvbuild.serve-unknown"
POLICY = (MAX_STALENESS, WHEN_STALE, WHEN_TESTS_FAIL, SERVE_UNKNOWN)


def policy_properties(config: ModelConfig) -> dict[str, str]:
    """Only what differs from the defaults: a view without any of them has the default policy."""
    found = {}
    if config.max_staleness is not None:
        found[MAX_STALENESS] = str(config.max_staleness // timedelta(milliseconds=1))
    if config.when_stale != "query":
        found[WHEN_STALE] = config.when_stale
    if config.when_tests_fail != "serve":
        found[WHEN_TESTS_FAIL] = config.when_tests_fail
    if config.serve_unknown:
        found[SERVE_UNKNOWN] = "true"
    return found


def policy_of(properties: Mapping[str, str]) -> ModelConfig:
    """The policy of a view. An unknown value counts as the default, which never serves stale rows."""
    window = properties.get(MAX_STALENESS, "")
    stale, failed = properties.get(WHEN_STALE), properties.get(WHEN_TESTS_FAIL)
    return ModelConfig(
        max_staleness=timedelta(milliseconds=int(window)) if re.fullmatch("[0-9]{1,15}", window) else None,
        when_stale="serve" if stale == "serve" else "fail" if stale == "fail" else "query",
        when_tests_fail="query" if failed == "query" else "fail" if failed == "fail" else "serve",
        serve_unknown=properties.get(SERVE_UNKNOWN) == "true",
    )
