"""`SELECT *` of a table -> findings, and the columns that can replace it, if they are known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from mvbuild.graph.model import ModelNode
from mvbuild.lint.facts import Facts
from mvbuild.lint.model import Edit, Fix, Found, Option, Options, Rule
from mvbuild.lint.rules.values import flag
from mvbuild.lint.statement import Statement, cte_of, name_of, qualifier_of, relations, selects
from mvbuild.names import quote
from mvbuild.parse.model import Read


def check(facts: Facts, node: ModelNode, options: Options) -> Iterator[Found]:
    statement = facts.statement(node)
    if statement.is_piped:
        return
    stars = _all(statement.tree) if options["everywhere"] else _that_matter(statement.tree)
    for star, select in sorted(stars, key=lambda pair: pair[0].meta.get("start", 0)):
        tables = [r for r in _expanded(star, select) if statement.read_of(r)]
        if not tables:
            continue
        names = _names(statement, tables)
        shown = " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)
        message = (
            f"The columns are whatever {shown} {'has' if len(names) == 1 else 'have'}: a new column there becomes a new column here"
            if names
            else "The columns are not listed here"
        )
        yield Found(message=message, span=statement.span_of(_whole(star)), fix=_fix(facts, node, statement, star, select))


def _all(tree: exp.Expr) -> list[tuple[exp.Star, exp.Select]]:
    return [(star, select) for select in selects(tree) for star in _stars(select)]


def _that_matter(tree: exp.Expr) -> list[tuple[exp.Star, exp.Select]]:
    """Stars that add columns to the result, or to rows that are compared as a whole (DISTINCT, UNION, INTERSECT, EXCEPT)."""
    found: dict[int, tuple[exp.Star, exp.Select]] = {}
    seen: set[int] = set()
    _reach(tree, found, seen)
    for node in tree.walk():
        is_select = isinstance(node, exp.Select) and bool(node.args.get("distinct"))
        if is_select or (isinstance(node, exp.SetOperation) and node.args.get("distinct") is not False):
            _reach(node, found, seen)
    return list(found.values())


def _reach(query: exp.Expr, found: dict[int, tuple[exp.Star, exp.Select]], seen: set[int]) -> None:
    waiting: list[exp.Expr] = [query]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, exp.Subquery):
            waiting.append(node.this)
        elif isinstance(node, exp.SetOperation):
            waiting += (node.left, node.right)
        elif isinstance(node, exp.Select):
            for star in _stars(node):
                found[id(star)] = star, node
                for relation in _expanded(star, node):
                    cte = cte_of(relation)
                    if cte is not None or isinstance(relation, exp.Subquery):
                        waiting.append(cte.this if cte is not None else relation)


def _stars(select: exp.Select) -> Iterator[exp.Star]:
    for projection in select.expressions:
        star = projection.this if isinstance(projection, exp.Column) else projection
        if isinstance(star, exp.Star):
            yield star


def _whole(star: exp.Star) -> exp.Expr:
    """`t.*` for its star."""
    return star.parent if isinstance(star.parent, exp.Column) else star


def _expanded(star: exp.Star, select: exp.Select) -> list[exp.Expr]:
    """The relations whose columns a star expands to."""
    qualifier = qualifier_of(star.parent) if isinstance(star.parent, exp.Column) else ""
    kept = [r for r in relations(select) if not (isinstance(r.parent, exp.Join) and r.parent.kind in ("SEMI", "ANTI"))]
    if not qualifier:
        return kept
    return [r for r in kept if name_of(r) == qualifier]


def _names(statement: Statement, tables: Sequence[exp.Expr]) -> list[str]:
    names = []
    for table in tables:
        found = statement.read_of(table)
        if found:
            names.append(f"'{'.'.join(found[1].parts)}'")
    return list(dict.fromkeys(names))


# The fix


def _fix(facts: Facts, node: ModelNode, statement: Statement, star: exp.Star, select: exp.Select) -> Fix | None:
    """Only if all columns come from tables, and all of them are known."""
    whole = _whole(star)
    place = statement.extent(whole)
    file = statement.in_file(*place) if place else None
    is_plain = not any(star.args.values()) and not _mixes(select) and statement.text.text[slice(*place or (0, 0))].endswith("*")
    if file is None or place is None or not is_plain:
        return None
    names: list[tuple[str, str]] = []
    all_relations = relations(select)
    for relation in _expanded(star, select):
        found = statement.read_of(relation)
        columns = facts.columns.get(node.reads[found[0]]) if found and _is_plain(relation, found[1]) else None
        alias = _written(relation) if len(all_relations) > 1 or isinstance(star.parent, exp.Column) else ""
        if not columns or alias is None or any("\n" in c.name for c in columns):
            return None
        names += ((alias, column.name) for column in columns)
    texts = [f"{quote(alias)}.{quote(name)}" if alias else quote(name) for alias, name in names]
    return Fix(edits=(Edit(file, _separator(statement, place[0]).join(texts)),), rewrite=_rewriting(whole, names))


def _is_plain(relation: exp.Expr, read: Read) -> bool:
    """Whether a table has its own columns under their own names here."""
    alias = relation.args.get("alias")
    return not (read.travel or relation.args.get("pivots") or (isinstance(alias, exp.TableAlias) and alias.columns))


def _mixes(select: exp.Select) -> bool:
    """Whether the star gives other columns than those of the tables in sequence."""
    joins = [join for node in select.walk() if isinstance(node, exp.Join) for join in (node,) if node.find_ancestor(exp.Select) is select]
    merged = any(join.args.get("using") or join.args.get("method") == "NATURAL" for join in joins)
    return merged or bool(select.args.get("laterals")) or any(isinstance(r, exp.Lateral) for r in relations(select))


def _written(relation: exp.Expr) -> str | None:
    """The alias of a table; None if there is none and its name may be a template's."""
    return relation.alias or None


def _separator(statement: Statement, start: int) -> str:
    """One column per line if the star is on a line of its own."""
    text = statement.text.text
    line = text[text.rfind("\n", 0, start) + 1 : start]
    return ",\n" + line if line.strip() == "" and "\n" in text[:start] else ", "


def _rewriting(whole: exp.Expr, names: Sequence[tuple[str, str]]):  # type: ignore[no-untyped-def]
    key = _key(whole)

    def rewrite(tree: exp.Expr) -> None:
        for select in list(selects(tree)):
            for index, projection in enumerate(select.expressions):
                if _key(projection) == key:
                    columns = [_column(alias, name) for alias, name in names]
                    select.set("expressions", [*select.expressions[:index], *columns, *select.expressions[index + 1 :]])
                    break

    return rewrite


def _key(projection: exp.Expr) -> int | None:
    star = projection.this if isinstance(projection, exp.Column) else projection
    start = star.meta.get("start") if isinstance(star, exp.Star) else None
    return start if isinstance(start, int) else None


def _column(alias: str, name: str) -> exp.Column:
    return exp.Column(this=_identifier(name), table=_identifier(alias) if alias else None)


def _identifier(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=quote(name) != name)


RULE = Rule(
    code="select-star",
    level="warning",
    title="A star takes its columns from a table, so the text of the model does not list them.",
    why=(
        "A column added to the table changes the result, and the schema of the storage with it; a column renamed there "
        "disappears here without a trace. Not reported for `count(*)`, for a star over a common table expression or a subquery that "
        "names its columns, and for import CTEs (`WITH o AS (SELECT * FROM ...)`) whose columns the query then names, unless whole rows "
        "are compared there (DISTINCT, UNION, INTERSECT, EXCEPT)."
    ),
    help="Name the columns.",
    check=check,
    options={"everywhere": Option(default=False, doc="true: also report the stars of import CTEs.", check=flag)},
    fix="Replaces the star by the columns, if those of all its tables are known exactly.",
    wrong={"models/names.sql": "SELECT * FROM {{ ref('customers') }}\n"},
    right={"models/names.sql": "WITH c AS (SELECT * FROM {{ ref('customers') }})\nSELECT c.id, c.name FROM c\n"},
)
