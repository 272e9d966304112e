"""MV + StrategyChoice -> the error of `incremental_strict`, or the warning of `incremental`, if a refresh would be full."""

from __future__ import annotations

from mvbuild.diagnostics import Diagnostic, error, warning
from mvbuild.graph.model import ModelNode
from mvbuild.incremental.choice import StrategyChoice
from mvbuild.incremental.reasons import CODES


def strict_error(node: ModelNode, choice: StrategyChoice) -> Diagnostic | None:
    if node.model.config.refresh_policy != "incremental_strict" or not choice.breaks_policy:
        return None
    return error("not-incremental", _message(node, choice), choice.span or node.model.file.line_span(1), help=CODES[choice.code][1])


def fallback_warning(node: ModelNode, choice: StrategyChoice) -> Diagnostic | None:
    if node.model.config.refresh_policy != "incremental" or not choice.breaks_policy:
        return None
    return warning("not-incremental", _message(node, choice), choice.span or node.model.file.line_span(1), help=CODES[choice.code][1])


def _message(node: ModelNode, choice: StrategyChoice) -> str:
    return f"'{node.model.name}' cannot be refreshed incrementally ({choice.code}): {choice.message}"
