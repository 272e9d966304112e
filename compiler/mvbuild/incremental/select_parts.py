"""one SELECT over its tables -> its aggregate and windows, and its values computed from those."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from mvbuild.incremental.algebra import Aggregate, Item, Project, Relation, Window, column, conjuncts, names_in
from mvbuild.incremental.functions import POSITIONS, RANKINGS, called, is_aggregate, is_scalar, unwrapped
from mvbuild.incremental.push_filters import filtered
from mvbuild.incremental.reasons import Refused
from mvbuild.incremental.scopes import Scope, is_known, known_column, only_child, placed, replaced
from mvbuild.incremental.syntax import aggregates_in, require, unsupported
from mvbuild.lineage.expression_type import type_of

if TYPE_CHECKING:
    from mvbuild.incremental.shape import _Builder


_CLAUSES = (exp.Star, exp.Where, exp.Ordered, exp.Order, exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)
"""The parts of an aggregate or window function that are not values."""


@dataclass
class SelectParts:
    """Aggregates and window functions of one SELECT."""

    builder: _Builder
    scope: Scope
    tree: exp.Select

    def compute(self, relation: Relation, selected: list[tuple[str, exp.Expr]]) -> tuple[Relation, list[exp.Expr]]:
        """The relation with everything that the selected values need, and those values."""
        group, having, qualify = (self.tree.args.get(key) for key in ("group", "having", "qualify"))
        aliases = {name.lower(): value for name, value in selected if not isinstance(value, exp.Column) or is_known(value) or True}
        written = [value for _, value in selected]
        windows = any(value.find(exp.Window) for value in written)
        own = {name.lower() for source in self.scope.sources for name, _ in source.columns} | set(self.scope.merged)
        grouped = group is not None or having is not None or any(aggregates_in(value) for value in written)
        if not grouped and not windows and qualify is None:
            relation, values = self._in_turn(relation, selected, own)
            for value in values:
                self.builder.require_scalar(value)
            return relation, values
        written = [self._with_aliases(value, dict(list(aliases.items())[:at]), own) for at, value in enumerate(written)]
        if grouped or any(aggregates_in(value) for value in written):
            keys = self._group_keys(group, selected, own)
            relation, values = self._grouped(relation, keys, written, having, aliases, own)
        else:
            values = []
            for value in written:
                relation, made = self.builder.scalars(relation, value, self.scope)
                values.append(made)
        filters = [self._with_aliases(q, aliases, own) for q in conjuncts(qualify.this if qualify else None)]
        if qualify is not None and group is not None:
            raise unsupported(qualify)
        conditions = [self.builder.resolved(q, self.scope) for q in filters]
        relation, computed = self._windowed(relation, [*values, *conditions])
        values, conditions = computed[: len(values)], computed[len(values) :]
        for value in (*values, *conditions):
            self.builder.require_scalar(value)
        return filtered(relation, conditions), values

    def _in_turn(self, relation: Relation, selected: list[tuple[str, exp.Expr]], own: set[str]) -> tuple[Relation, list[exp.Expr]]:
        """A value that others refer to by its alias is a column before theirs: Spark computes it once."""
        values: list[exp.Expr] = []
        known: dict[str, exp.Expr] = {}
        for at, (name, written) in enumerate(selected):
            relation, value = self.builder.scalars(relation, self._with_aliases(written, known, own), self.scope)
            lowered = name.lower()
            later = (found for _, other in selected[at + 1 :] for found in other.find_all(exp.Column))
            if lowered not in own and any(not c.table and not is_known(c) and c.name.lower() == lowered for c in later):
                if not isinstance(value, exp.Column):
                    self.builder.require_scalar(value)
                    unique = self.builder.fresh(name, type_of(value, self.builder.types))
                    relation = Project(relation, (*(Item(n, column(n)) for n in relation.columns), Item(unique, value)))
                    value = column(unique)
                known[lowered] = known_column(value.name)
            values.append(value)
        return relation, values

    def _with_aliases(self, expression: exp.Expr, aliases: Mapping[str, exp.Expr], own: set[str]) -> exp.Expr:
        """Names of the SELECT list, where no table has a column of that name."""
        holder = exp.paren(expression.copy(), copy=False)
        for _ in range(8):
            found = [
                c
                for c in holder.find_all(exp.Column)
                if not c.table and not is_known(c) and c.name.lower() in aliases and c.name.lower() not in own
            ]
            if not found:
                break
            for one in found:
                value = aliases[one.name.lower()].copy()
                one.replace(value if isinstance(value, exp.Column) else exp.paren(value))
        return only_child(holder)

    def _group_keys(self, group: exp.Expr | None, selected: list[tuple[str, exp.Expr]], own: set[str]) -> list[exp.Expr]:
        if group is None:
            return []
        require(group, {"expressions", "all"}, "unsupported-operator")
        if group.args.get("all"):
            return [value for _, value in selected if not aggregates_in(value)]
        aliases = {name.lower(): value for name, value in selected}
        keys = []
        for one in group.expressions:
            if isinstance(one, exp.Literal) and not one.is_string:
                keys.append(selected[int(one.name) - 1][1])
            elif isinstance(one, exp.Rollup | exp.Cube | exp.GroupingSets):
                raise Refused("unsupported-operator", "ROLLUP, CUBE and GROUPING SETS are not refreshed incrementally", one)
            else:
                keys.append(self._with_aliases(one, aliases, own).unnest())
        return keys

    def _grouped(
        self,
        relation: Relation,
        keys: list[exp.Expr],
        selected: list[exp.Expr],
        having: exp.Expr | None,
        aliases: Mapping[str, exp.Expr],
        own: set[str],
    ) -> tuple[Relation, list[exp.Expr]]:
        items: list[Item] = []
        for key in keys:
            value = self.builder.resolved(key, self.scope)
            self.builder.require_scalar(value)
            if any(value == item.expression for item in items):
                continue
            items.append(Item(self.builder.fresh(key.alias_or_name or "key", type_of(value, self.builder.types)), value))
        conditions = [self._with_aliases(c, aliases, own) for c in conjuncts(having.this if having else None)]
        made, values = self.aggregated(relation, tuple(items), [*selected, *conditions])
        chosen, filters = values[: len(selected)], values[len(selected) :]
        return filtered(made, filters), chosen

    def aggregated(self, relation: Relation, keys: tuple[Item, ...], written: list[exp.Expr]) -> tuple[Relation, list[exp.Expr]]:
        """The aggregate, and the expressions over its columns. Scalar subqueries are evaluated after it."""
        values: list[Item] = []
        results: list[exp.Expr] = []
        subqueries: list[tuple[int, exp.Expr]] = []
        for at, one in enumerate(written):
            holder = exp.paren(one.copy(), copy=False)
            for number, found in enumerate(list(holder.find_all(exp.Subquery))):
                if found.find_ancestor(exp.Subquery) is not None:
                    continue
                marker = f"mvbuild_subquery_{at}_{number}"
                subqueries.append((at, found.this))
                found.replace(known_column(marker))
                subqueries[-1] = (at, exp.alias_(found.this, marker, copy=False))
            resolved = self.builder.resolved(holder.this, self.scope)
            results.append(self._over(resolved, keys, values))
        made: Relation = Aggregate(relation, keys, tuple(values))
        for at, subquery in subqueries:
            made, scalar = self.builder.scalar_subquery(made, subquery.this, Scope(ctes=self.scope.ctes))
            results[at] = replaced(results[at], subquery.alias, scalar)
        allowed = set(made.columns)
        for result in results:
            missing = [n for n in names_in(result) if n not in allowed]
            if missing and not result.find(exp.Window):
                unknown = next((n for n in result.walk() if isinstance(n, exp.Func) and not is_scalar(n)), None)
                if unknown is not None:
                    name = called(unknown) or unknown.sql_name().lower()
                    raise Refused("unsupported-operator", f"{name}() is not a function that mvbuild refreshes incrementally", unknown)
                raise Refused("unsupported-operator", "a column that is neither grouped nor aggregated", result)
        return made, results

    def _over(self, expression: exp.Expr, keys: tuple[Item, ...], values: list[Item]) -> exp.Expr:
        """The expression with keys and aggregate functions replaced by the aggregate's columns."""
        holder = exp.paren(expression, copy=False)
        pending = [holder.this]
        while pending:
            node = pending.pop(0)
            key = next((k for k in keys if k.expression == node), None)
            if key is not None:
                node.replace(placed(column(key.name), node))
                continue
            function = unwrapped(node)
            if is_aggregate(function) and not isinstance(node.parent, exp.Window):
                node.replace(placed(self._value(node, values), node))
                continue
            # What a window function is given may be an aggregate.
            pending.extend((function if isinstance(node.parent, exp.Window) and node.arg_key == "this" else node).iter_expressions())
        return only_child(holder)

    def _value(self, node: exp.Expr, values: list[Item]) -> exp.Expr:
        found = next((v for v in values if v.expression == node), None)
        if found is None:
            function = unwrapped(node)
            for part in node.walk():
                if part is function or isinstance(part, (*_CLAUSES, exp.Lambda)):
                    continue
                if not is_scalar(part):
                    raise unsupported(part)
            found = Item(self.builder.fresh(type(node).__name__, type_of(node, self.builder.types)), node.copy())
            values.append(found)
        return column(found.name)

    def _windowed(self, relation: Relation, expressions: list[exp.Expr]) -> tuple[Relation, list[exp.Expr]]:
        items: list[Item] = []
        results = []
        for one in expressions:
            holder = exp.paren(one.copy(), copy=False)
            for found in list(holder.find_all(exp.Window)):
                if isinstance(found.parent, exp.Expr) and found.find_ancestor(exp.Window) is not None:
                    raise unsupported(found)
                self._require_window(found)
                known = next((i for i in items if i.expression == found), None)
                if known is None:
                    known = Item(self.builder.fresh("window", type_of(found.this, self.builder.types)), found.copy())
                    items.append(known)
                found.replace(column(known.name))
            results.append(holder.this)
        return (Window(relation, tuple(items)) if items else relation), results

    def _require_window(self, window: exp.Window) -> None:
        require(window, {"this", "partition_by", "order", "spec", "over"}, "unsupported-operator")
        function = unwrapped(window.this)
        if not (is_aggregate(function) or isinstance(function, RANKINGS + POSITIONS)):
            raise unsupported(window.this)
        for part in window.walk():
            if part in (window, function) or isinstance(part, (*_CLAUSES, exp.WindowSpec, exp.Lambda)):
                continue
            if not is_scalar(part) and part is not function:
                raise unsupported(part)
