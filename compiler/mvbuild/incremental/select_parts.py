"""one SELECT over its tables -> its aggregate and windows, and its values computed from those."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from mvbuild.dataclass import dataclass
from mvbuild.incremental.aggregates import CLAUSES, aggregated
from mvbuild.incremental.algebra import Item, Relation, Window, column, conjuncts, with_items
from mvbuild.incremental.building import Building, require_scalar
from mvbuild.incremental.functions import POSITIONS, RANKINGS, is_aggregate, is_scalar, unwrapped
from mvbuild.incremental.grouping_sets import Sets, grouping, with_session, written_sets
from mvbuild.incremental.push_filters import filtered
from mvbuild.incremental.restrict import partition_columns_of
from mvbuild.incremental.scopes import Scope, known, only_child, resolved, with_ctes
from mvbuild.incremental.subqueries import names_of, scalars, with_subqueries
from mvbuild.incremental.syntax import aggregates_in, has_query, require, unsupported


def _with_common_keys(windows: Sequence[Item]) -> list[tuple[Item, ...]]:
    """Windows that partition by a common column are one operator; others are above each other, as in Spark's plans."""
    found: list[tuple[Item, ...]] = []
    for item in windows:
        own = frozenset(partition_columns_of([item]))
        at = next((at for at, others in enumerate(found) if own & set(partition_columns_of(others))), None)
        if at is None and not own and found and not partition_columns_of(found[-1]):
            at = len(found) - 1
        if at is None:
            found.append((item,))
        else:
            found[at] = (*found[at], item)
    return found


@dataclass
class SelectParts:
    """Aggregates and window functions of one SELECT."""

    building: Building
    scope: Scope
    tree: exp.Select
    session: Item | None = None
    """The column that is a key of GROUP BY in place of session_window()."""

    def compute(self, relation: Relation, selected: list[tuple[str, exp.Expr]]) -> tuple[Relation, list[exp.Expr]]:
        """The relation with everything that the selected values need, and those values."""
        group, having, qualify = (self.tree.args.get(key) for key in ("group", "having", "qualify"))
        aliases = {name.lower(): value for name, value in selected}
        written = [value for _, value in selected]
        windows = any(value.find(exp.Window) for value in written)
        own = self.scope.column_names
        grouped = group is not None or having is not None or any(aggregates_in(value) for value in written)
        if self.session is not None and group is None:
            raise unsupported(self.session.expression)
        if not grouped and not windows and qualify is None:
            relation, values = self._in_turn(relation, selected, own)
            for value in values:
                require_scalar(value)
            return relation, values
        written = [self._with_aliases(value, dict(list(aliases.items())[:at]), own) for at, value in enumerate(written)]
        grouped = grouped or any(aggregates_in(value) for value in written)
        if grouped:
            relation, values = self._grouped(relation, group, selected, written, having)
        else:
            values = []
            for value in written:
                relation, made = scalars(self.building, relation, value, self.scope)
                values.append(made)
        filters = [self._with_aliases(q, aliases, own) for q in conjuncts(qualify.this if qualify else None)]
        if qualify is not None and group is not None:
            raise unsupported(qualify)
        conditions = [resolved(q, self.scope) for q in filters]
        relation, computed = self._windowed(relation, [*values, *conditions], grouped=grouped)
        values, conditions = computed[: len(values)], computed[len(values) :]
        for value in (*values, *conditions):
            require_scalar(value)
        return filtered(relation, conditions), values

    def _in_turn(self, relation: Relation, selected: list[tuple[str, exp.Expr]], own: frozenset[str]) -> tuple[Relation, list[exp.Expr]]:
        """A value that others refer to by its alias is a column before theirs: Spark computes it once."""
        values: list[exp.Expr] = []
        aliases: dict[str, exp.Expr] = {}
        for at, (name, written) in enumerate(selected):
            relation, value = scalars(self.building, relation, self._with_aliases(written, aliases, own), self.scope)
            lowered = name.lower()
            later = (found for _, other in selected[at + 1 :] for found in other.find_all(exp.Column))
            if lowered not in own and any(not c.table and c.name.lower() == lowered for c in later):
                if not isinstance(value, exp.Column):
                    require_scalar(value)
                    unique = self.building.computed(name, value)
                    relation = with_items(relation, [Item(unique, value)])
                    value = column(unique)
                aliases[lowered] = known(value.name)
            values.append(value)
        return relation, values

    def _with_aliases(self, expression: exp.Expr, aliases: Mapping[str, exp.Expr], own: frozenset[str]) -> exp.Expr:
        """Names of the SELECT list, where no table has a column of that name."""
        holder = exp.paren(expression.copy(), copy=False)
        for _ in range(8):
            found = [c for c in holder.find_all(exp.Column) if not c.table and c.name.lower() in aliases and c.name.lower() not in own]
            found = [c for c in found if not self._is_of_subquery(c)]
            if not found:
                break
            for one in found:
                value = aliases[one.name.lower()].copy()
                one.replace(value if isinstance(value, exp.Column | exp.Placeholder) else exp.paren(value))
        return only_child(holder)

    def _is_of_subquery(self, name: exp.Column) -> bool:
        """Whether a subquery around it has a table with such a column, which comes before an alias of the query around."""
        around = name.parent_select
        while around is not None:
            if name.name.lower() in names_of(self.building, around, with_ctes(around, self.scope)).column_names:
                return True
            around = around.parent_select
        return False

    def _group_keys(
        self, group: exp.Expr | None, selected: list[tuple[str, exp.Expr]], own: frozenset[str]
    ) -> tuple[list[exp.Expr], Sets | None]:
        """The keys, and the grouping sets if there are any, as they were written but without positions and aliases."""
        if group is None:
            return [], None
        assert isinstance(group, exp.Group)
        if group.args.get("all"):
            require(group, {"all"}, "unsupported-operator")
            return [value for _, value in selected if not aggregates_in(value)], None
        aliases = {name.lower(): value for name, value in selected}

        def meant(one: exp.Expr) -> exp.Expr:
            if isinstance(one, exp.Literal) and not one.is_string:
                return selected[int(one.name) - 1][1]
            return self._with_aliases(one, aliases, own).unnest()

        return written_sets(group, meant)

    def _grouped(
        self,
        relation: Relation,
        group: exp.Expr | None,
        selected: list[tuple[str, exp.Expr]],
        written: list[exp.Expr],
        having: exp.Expr | None,
    ) -> tuple[Relation, list[exp.Expr]]:
        own, aliases = self.scope.column_names, {name.lower(): value for name, value in selected}
        conditions = [self._with_aliases(c, aliases, own) for c in conjuncts(having.this if having else None)]
        written = [*written, *conditions]
        keys, sets = self._group_keys(group, selected, own)
        relation, keys, written = self._with_key_columns(relation, keys, written)
        for at, one in enumerate(written):
            relation, written[at] = self._within_aggregates(relation, one)
        values = [(key.alias_or_name, resolved(key, self.scope)) for key in keys]
        chosen = [[resolved(key, self.scope) for key in one] for one in sets] if sets is not None else None
        rows = grouping(self.building, relation, values, chosen, group)
        if self.session is not None:
            rows = with_session(rows, self.session, group)
        made, results = aggregated(self.building, self.scope, rows, written)
        of_select = len(selected)
        return filtered(made, results[of_select:]), results[:of_select]

    def _with_key_columns(
        self, relation: Relation, keys: list[exp.Expr], written: list[exp.Expr]
    ) -> tuple[Relation, list[exp.Expr], list[exp.Expr]]:
        """The rows with a column for each key that has a subquery, and the column in its place."""
        keys = list(keys)
        for at, key in enumerate(keys):
            if not has_query(key):
                continue
            relation, value = scalars(self.building, relation, key, self.scope)
            require_scalar(value)
            unique = self.building.computed("key", value)
            relation = with_items(relation, [Item(unique, value)])
            written = [one.transform(lambda node, key=key, unique=unique: known(unique) if node == key else node) for one in written]
            keys[at] = known(unique)
        return relation, keys, written

    def _within_aggregates(self, relation: Relation, written: exp.Expr) -> tuple[Relation, exp.Expr]:
        """The rows with a column for each subquery that an aggregate function is computed from."""
        if not has_query(written):
            return relation, written
        holder = exp.paren(written.copy(), copy=False)
        for found in list(holder.find_all(exp.Func, exp.Filter)):
            if is_aggregate(unwrapped(found)) and has_query(found) and found.find_ancestor(exp.Query, exp.Window) is None:
                relation = with_subqueries(self.building, relation, found, self.scope)
        return relation, only_child(holder)

    def _windowed(self, relation: Relation, expressions: list[exp.Expr], *, grouped: bool) -> tuple[Relation, list[exp.Expr]]:
        items: list[Item] = []
        keys: list[Item] = []
        results = []
        for one in expressions:
            holder = exp.paren(one.copy(), copy=False)
            for found in list(holder.find_all(exp.Window)):
                if isinstance(found.parent, exp.Expr) and found.find_ancestor(exp.Window) is not None:
                    raise unsupported(found)
                self._require_window(found)
                self._name_keys(found, keys)
                made = next((i for i in items if i.expression == found), None)
                if made is None:
                    made = Item(self.building.computed("window", found.this), found.copy())
                    items.append(made)
                found.replace(column(made.name))
            results.append(holder.this)
        # Above an aggregate, Spark computes a key that is selected too once.
        named = {key.expression: column(key.name) for key in keys if grouped}
        results = [named.get(one.unnest(), one) for one in results]
        relation = with_items(relation, keys)
        for together in _with_common_keys(items):
            relation = Window(relation, together)
        return relation, results

    def _name_keys(self, window: exp.Window, keys: list[Item]) -> None:
        """PARTITION BY an expression as PARTITION BY a column of the rows below, as Spark plans it: rows are found again by columns."""
        for part in window.args.get("partition_by") or ():
            if isinstance(part, exp.Column) or part.find(exp.Column) is None or aggregates_in(part):
                continue
            key = next((one for one in keys if one.expression == part), None)
            if key is None:
                key = Item(self.building.computed("partition", part), part.copy())
                keys.append(key)
            part.replace(column(key.name))

    def _require_window(self, window: exp.Window) -> None:
        require(window, {"this", "partition_by", "order", "spec", "over"}, "unsupported-operator")
        function = unwrapped(window.this)
        if not (is_aggregate(function) or isinstance(function, RANKINGS + POSITIONS)):
            raise unsupported(window.this)
        for part in window.walk():
            if part in (window, function) or isinstance(part, (*CLAUSES, exp.WindowSpec, exp.Lambda)):
                continue
            if not is_scalar(part) and part is not function:
                raise unsupported(part)
