"""text of an optimized plan -> the same plan without nodes that only rename, drop or order columns, and with sorted conditions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from hashlib import blake2b

from mvbuild.equivalence.plan_distincts import with_sets_in_order
from mvbuild.equivalence.plan_joins import with_flat_joins
from mvbuild.equivalence.plan_rules import (
    with_filters_above_windows,
    with_lists_in_order,
    with_values_read,
    with_whole_aggregates,
    with_whole_projections,
)
from mvbuild.equivalence.plan_tree import Node, conjuncts_of, ids_of, items_of, lines_of, tree_of

_RENAME = re.compile(r"\b\w+#(\d+)(L?) AS \w+#(\d+)L?(?=[,\]])")
_ALIAS = re.compile(r" AS ([^#\n]+)#(\d+)")
_ATTRIBUTES = re.compile(r"Project \[(?:\w*#\d+L?(?:, )?)*\]\Z")
_CONDITION = re.compile(r"(?P<node>Filter |Join \w+, )(?P<condition>\(.*\))\Z")
_NAMES = {
    "approx_percentile": "percentile_approx",
    "bit_get": "getbit",
    "ceiling": "ceil",
    "char": "chr",
    **dict.fromkeys(("char_length", "character_length", "len"), "length"),
    "date_diff": "datediff",
    "lcase": "lower",
    "position": "locate",
    "pow": "power",
    "sha1": "sha",
    "signum": "sign",
    "string_agg": "listagg",
    "struct": "named_struct",
    "substr": "substring",
    "to_unix_timestamp": "unix_timestamp",
    "ucase": "upper",
    "var_samp": "variance",
}
"""Names of functions -> other names of the same ones, of which sqlglot writes only one."""
_OF_FUNCTIONS = re.compile(rf"(?<!\w)({'|'.join((*_NAMES, *_NAMES.values()))})\(", re.IGNORECASE)
_COMPARED_ROW = re.compile(r"named_struct\(((?:\w+, \w*#\d+L?(?:, )?)+)\) IN \(")
_FIELD = re.compile(r"\w+, (?=\w*#)")
_EXPANDED = re.compile(r"\bExpand \[\[.*\]\], \[(.*)\]$", re.MULTILINE)
"""The columns of an Expand, which Spark names by the expressions that they are made of."""
_SCANNED = re.compile(r"RelationV2\[([^\[\]\n]*)\]")
_HINT = re.compile(r"^((?:[ :]*(?:\+- |:- ))?Join .*?)(?:, (?:left|right)Hint=\(strategy=\w+\))+$", re.MULTILINE)
"""How Spark is asked to join decides about no row."""
_VALUE = re.compile(r"(?P<value>.+) AS \w*#(?P<id>\d+)L?")
_CERTAIN = re.compile(r"count\(1\)|(?:\w+\()+(?:distinct )?\w*#\d+L?\)+|MakeDecimal\(sum\(UnscaledValue\(\w*#\d+\)\),\d+,\d+\)")
"""A count of rows, and functions of one column without other parameters."""


def without_renames(plan: str) -> str:
    """A column that is another one under a new id becomes that one. A projection of plain columns is removed, except the first one, which
    defines the columns of the result, and the first ones below UNION, which works by position."""
    # Spark keeps the word CROSS even if a join without a condition has got one.
    plan = re.sub(r"\bJoin Cross(?=,|$)", "Join Inner", _without_long_names(plan), flags=re.MULTILINE)
    plan = _with_one_spelling(_HINT.sub(r"\1", plan))
    # Spark ignores the case of a unit of time.
    plan = re.sub(r"\bdate_trunc\((\w+), ", lambda match: match[0].lower(), plan)
    names = {new: f"#{old}{suffix}" for old, suffix, new in _RENAME.findall(plan)}

    def original(match: re.Match[str]) -> str:
        seen, found = {match[2]}, match[2]
        text = match[0]
        while found in names:
            text = names[found]
            found = text[1:].rstrip("L")
            if found in seen:
                return match[0]
            seen.add(found)
        return text

    inlined = _RENAME.sub(lambda match: match[0].partition(" AS ")[0], plan)
    renamed = re.sub(r"(\w*)#(\d+)L?", lambda match: original(match) if match[2] in names else match[0], inlined)
    repeated: dict[str, str] = {}
    labels = _labels(renamed)
    # What reads columns in an order that does not depend on how it was written comes first: lists follow it.
    ordered = [_in_order(line, labels, is_tree=True) for line in renamed.splitlines()]
    roots = [_simplified(_by_laws(root), repeated, keep=True) for root in tree_of(ordered)]
    lines = [line for root in roots for line in lines_of(with_flat_joins(root), 0)]
    once = re.sub(r"#(\d+)", lambda match: f"#{repeated.get(match[1], match[1])}", "\n".join(lines))
    return "\n".join(_in_order(line, labels) for line in once.split("\n"))


def _by_laws(root: Node) -> Node:
    laws = (
        _unordered,
        with_sets_in_order,
        with_filters_above_windows,
        with_whole_projections,
        with_whole_aggregates,
        with_values_read,
        with_lists_in_order,
    )
    for law in laws:
        root = law(root)
    return root


def _labels(plan: str) -> dict[str, str]:
    """Id of a column -> a name that does not depend on ids: the number of its table in the plan and its name there, or a hash of how it is
    computed."""
    scanned = enumerate(_SCANNED.findall(plan))
    labels = {id_: f"{at}.{name}" for at, columns in scanned for name, id_ in re.findall(r"(\w+)#(\d+)", columns)}
    # What a value is computed from is below it.
    for line in reversed(plan.splitlines()):
        for value, id_ in _computed(line):
            labels.setdefault(id_, blake2b(_labelled(value, labels).encode(), digest_size=8).hexdigest())
    return labels


def _computed(line: str) -> Iterator[tuple[str, str]]:
    """The values of a projection, an aggregate or a window, each with its id."""
    _, found, rest = line.partition(" [")
    for part in items_of(f"[{rest}") if found else ():
        for item in items_of(part[1:-1]):
            match = _VALUE.fullmatch(item)
            if match:
                yield match["value"], match["id"]


def _labelled(text: str, labels: Mapping[str, str]) -> str:
    return re.sub(r"(\w*)#(\d+)L?", lambda found: labels.get(found[2], found[1]), text)


def _in_order(line: str, labels: Mapping[str, str], *, is_tree: bool = False) -> str:
    """The parts of a conjunction, in an order that does not depend on how they were written. `is_tree`: in brackets, for the laws."""
    match = _CONDITION.search(line)
    parts = conjuncts_of(match["condition"]) if match else []
    if match is None or len(parts) < 2:
        return line

    ordered = sorted(parts, key=lambda part: _labelled(part, labels))
    condition = " AND ".join(ordered)
    return f"{line[: match.start('condition')]}{f'({condition})' if is_tree else condition}"


def with_plain_names(plan: str) -> str:
    """Replace names of table columns that contain other characters than letters, digits and underscores."""
    for columns in _SCANNED.findall(plan):
        for name, id_ in re.findall(r"(?:\A|, )((?:(?!, |#\d).)+)#(\d+)", columns):
            if not re.fullmatch(r"\w+", name):
                plan = plan.replace(f"{name}#{id_}", f"column_{name.encode().hex()}#{id_}")
    return plan


def _with_one_spelling(plan: str) -> str:
    """A function with two names prints the one that was written. Names of the fields of a row decide nothing where it is compared."""
    plan = _OF_FUNCTIONS.sub(lambda match: f"{_NAMES.get(match[1].lower(), match[1].lower())}(", plan)
    return _COMPARED_ROW.sub(lambda match: f"named_struct({_FIELD.sub(r'field, ', match[1])}) IN (", plan)


def _without_long_names(plan: str) -> str:
    """Columns without a name are named by their expression: only the id counts. Longer names first, which may contain others."""
    found = {(match[1], match[2]) for match in _ALIAS.finditer(plan) if not match[1].isidentifier()}
    for columns in _EXPANDED.findall(plan):
        outputs = ((item.rpartition("#")[0], ids_of(item)[-1:]) for item in items_of(columns))
        found |= {(name, ids[0]) for name, ids in outputs if ids and not name.isidentifier()}
    for name, id_ in sorted(found, key=lambda one: (-len(one[0]), one)):
        plan = plan.replace(f"{name}#{id_}", f"column#{id_}")
    return plan


def _unordered(node: Node) -> Node:
    """A table stores only the rows of a result. An order below LIMIT or within an operator remains, because it decides which rows there
    are."""
    if len(node.children) != 1:
        return node
    if node.text.startswith("Sort ["):
        return _unordered(node.children[0])
    if node.text.startswith("Project ["):
        return Node(node.text, [_unordered(node.children[0])])
    return node


def _simplified(node: Node, repeated: dict[str, str], *, keep: bool) -> Node:
    """`repeated` gets the ids of aggregates that are computed under another id too."""
    if len(node.children) == 1 and _ATTRIBUTES.match(node.text):
        child = node.children[0]
        if not keep or ids_of(node.text) == _outputs(child):
            return _simplified(child, repeated, keep=keep)
    if keep and len(node.children) == 1 and node.text.startswith("Aggregate [") and (listed := _columns_of_repeats(node.text)):
        return Node(listed, [_simplified(node, repeated, keep=False)])
    text = node.text if keep or not node.text.startswith("Project [") else _without_repeats(node.text)
    if not keep and node.text.startswith("Aggregate ["):
        text = _with_each_value_once(node.text, repeated)
    # What filters, sorts, limits or adds a window passes the order of its columns on.
    passes = keep and not node.text.startswith(("Project [", "Aggregate ["))
    by_position = passes or node.text.startswith("Union")
    children = [_simplified(child, repeated, keep=by_position) for child in node.children]
    if node.text.startswith("Join RightOuter"):
        return Node(node.text.replace("Join RightOuter", "Join LeftOuter", 1), children[::-1])
    return Node(text, children)


def _without_repeats(project: str) -> str:
    """A projection with a plain column twice, once under another name, has it once."""
    seen: set[str] = set()
    kept = []
    for item in items_of(project[len("Project [") : -1]):
        if item not in seen or not re.fullmatch(r"\w*#\d+L?", item):
            kept.append(item)
        seen.add(item)
    return f"Project [{', '.join(kept)}]"


def _columns_of_repeats(aggregate: str) -> str:
    """The list of columns of an aggregate at the top that computes a value several times; empty if it does not.

    Only values whose text says all of them: a plan prints '1' like 1.
    """
    *_, values = items_of(aggregate.partition(" ")[2])
    items = list(items_of(values[1:-1]))
    computed = [match["value"] for item in items if (match := _VALUE.fullmatch(item))]
    if any(not _CERTAIN.fullmatch(value) for value in computed if computed.count(value) > 1):
        return ""
    columns = [item.rpartition(" AS ")[2] for item in items]
    are_columns = all(re.fullmatch(r"\w*#\d+L?", column) for column in columns)
    return f"Project [{', '.join(columns)}]" if are_columns and len(set(computed)) < len(computed) else ""


def _with_each_value_once(aggregate: str, repeated: dict[str, str]) -> str:
    """An aggregation that computes one value twice, as `sum(x)` beside `sum(sum(x)) OVER ()` does, computes it once."""
    head, _, rest = aggregate.partition(" ")
    *keys, values = items_of(rest)
    ids: dict[str, str] = {}
    kept = []
    for item in items_of(values[1:-1]):
        match = _VALUE.fullmatch(item)
        known = ids.setdefault(match["value"], match["id"]) if match else ""
        if match and known != match["id"]:
            repeated[match["id"]] = known
        else:
            kept.append(item)
    return f"{head} {', '.join([*keys, '[' + ', '.join(kept) + ']'])}"


def _outputs(node: Node) -> list[str] | None:
    """The columns of a node, in order; None if they are not certain."""
    if node.text.startswith("Filter ") and len(node.children) >= 1:
        return _outputs(node.children[-1])
    match = _SCANNED.match(node.text)
    if match:
        return ids_of(match[1])
    operator, _, rest = node.text.partition(" ")
    lists = list(items_of(rest)) if operator in ("Project", "Aggregate") else []
    if not lists or not lists[-1].startswith("["):
        return None
    last = [re.search(r"#(\d+)L?\Z", item) for item in items_of(lists[-1][1:-1])]
    return [found[1] for found in last if found] if all(last) else None
