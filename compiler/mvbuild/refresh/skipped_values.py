"""RefreshInputs -> NotIncremental if a row that changed has a value for which Iceberg skips files in another way than Spark compares.

For Spark NaN is larger than any number, and -0.0 equals 0.0. The bounds of a file have no NaN, and -0.0 is less than 0.0 there. So whether
a query with `x > 0.1` returns a row of NaN depends on the other rows of its file, and a change that is computed from its rows alone could
remove what the result never had.
"""

from __future__ import annotations

from mvbuild.incremental.compared_columns import compared_columns
from mvbuild.incremental.rewrite import Exchange, OverwritePartitions
from mvbuild.incremental.zeros import has_zeros
from mvbuild.names import quote
from mvbuild.refresh.inputs import RefreshInputs
from mvbuild.refresh.write_outcome import NotIncremental

_SKIPPED = "NaN|-0[.]0($|[^0-9])"
"""In the text of a number, or of a value that contains numbers."""


def require_no_skipped_values(inputs: RefreshInputs) -> None:
    """An `Exchange` computes what it writes from the tables, as a full refresh does: it may have more keys than it needs."""
    choice = inputs.choice
    assert choice.inputs is not None
    assert choice.shape is not None
    if choice.rewrite is None or isinstance(choice.rewrite.write, Exchange | OverwritePartitions):
        return
    compared, sources = compared_columns(choice.shape.root), []
    for leaf in choice.changes:
        types = {field["name"]: field["type"] for field in choice.inputs.inputs[leaf].schema["fields"]}
        floats = [name for name in compared.get(leaf, ()) if has_zeros(types.get(name))]
        sides = [name for side in ("plus", "minus") if (name := inputs.relations.get(f"{leaf} {side}")) is not None]
        if floats and not choice.inputs.inputs[leaf].is_auxiliary_view:
            has_one = " OR ".join(f"CAST({quote(name)} AS STRING) RLIKE '{_SKIPPED}'" for name in sorted(floats))
            sources += [f"SELECT 1 FROM {side} WHERE {has_one}" for side in sides]
    if sources and inputs.session.engine.rows(" UNION ALL ".join(sources), 1).rows:
        message = "a row with NaN or -0.0 changed, and whether the query returns it depends on the files"
        raise NotIncremental("nan-or-negative-zero", message)
