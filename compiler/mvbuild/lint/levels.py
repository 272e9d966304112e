"""`lint:` of the project and of a model -> Levels: the level and options of each rule; or what is wrong with it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, ProjectError, did_you_mean, error
from mvbuild.graph.model import Graph, ModelNode
from mvbuild.lint.model import LEVELS, Level, Options, Rule
from mvbuild.lint.rules import BY_CODE, RULES
from mvbuild.project.setting import EMPTY, Setting
from mvbuild.source import Span


@dataclass(frozen=True, kw_only=True)
class Levels:
    """`of_project`: the settings in mvbuild.yml. `only`: the rules requested on the command line; all if there are none."""

    of_project: Mapping[str, Any]
    only: frozenset[str] = frozenset()

    def level(self, rule: Rule, node: ModelNode | None = None) -> Level:
        """The nearest setting: config() or YAML of the model, its folder, `lint:` of the project, the table of rules."""
        if self.only and rule.code not in self.only:
            return "off"
        own = node.model.config.lint if node is not None else EMPTY
        for setting in (own.get(rule.code), self.of_project.get(rule.code)):
            level = _level(setting)
            if level is not None:
                return level
        return "warning" if self.only and rule.level == "off" else rule.level

    def options(self, rule: Rule, node: ModelNode) -> Options:
        found = {name: option.default for name, option in rule.options.items()}
        for setting in (self.of_project.get(rule.code), node.model.config.lint.get(rule.code)):
            if isinstance(setting, Mapping):
                found |= {name: value for name, value in setting.items() if name in found}
        return found


def levels_of(graph: Graph, nodes: Iterable[ModelNode], only: Collection[str] = ()) -> Levels:
    """Raises ProjectError for rules, levels and options that do not exist, in the project and in the selected models."""
    problems = [_unknown(name, None) for name in only if name not in BY_CODE]
    for name, setting in graph.project.lint.items():
        problems += _problems(name, setting.value, setting.key or setting.span, setting)
    seen: set[Span | None] = set()
    for node in nodes:
        config = node.model.config
        for name, value in config.lint.items():
            place = config.spans.get(f"lint.{name}") or config.spans.get("lint")
            if place not in seen:
                seen.add(place)
                problems += _problems(name, value, place, None)
    if problems:
        raise ProjectError(problems)
    return Levels(of_project={name: setting.value for name, setting in graph.project.lint.items()}, only=frozenset(only))


def _level(setting: Any) -> Level | None:
    if isinstance(setting, Mapping):
        setting = setting.get("level")
    # YAML reads a bare `off` as false.
    return "off" if setting is False else next((level for level in LEVELS if level == setting), None)


def _problems(name: str, value: Any, place: Span | None, setting: Setting | None) -> Iterator[Diagnostic]:
    rule = BY_CODE.get(name)
    if rule is None:
        yield _unknown(name, place)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            at = setting.at(key) if setting is not None else None
            yield from _of_key(rule, key, inner, (at.key or at.span) if at else place, at.span if at else place)
    elif _level(value) is None:
        yield _no_level(name, setting.span if setting else place)


def _of_key(rule: Rule, key: str, value: Any, place: Span | None, value_place: Span | None) -> Iterator[Diagnostic]:
    if key == "level":
        if _level(value) is None:
            yield _no_level(rule.code, value_place)
    elif key not in rule.options:
        known = ("level", *rule.options)
        yield error("unknown-key", f"Unknown option '{key}' of the rule '{rule.code}'", place, help=did_you_mean(key, known))
    else:
        wrong = rule.options[key].check(value)
        if wrong:
            yield error("wrong-type", f"'{key}' of '{rule.code}' {wrong}", value_place)


def _no_level(name: str, place: Span | None) -> Diagnostic:
    return error("wrong-type", f"'{name}' must be off, info, warning or error, or a mapping with `level` and options", place)


def _unknown(name: str, place: Span | None) -> Diagnostic:
    known = [rule.code for rule in RULES]
    return error("unknown-key" if place else "command-line", f"Unknown lint rule '{name}'", place, help=did_you_mean(name, known))
