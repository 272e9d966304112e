"""An error of the engine about a column of the result -> a diagnostic where the column gets its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from mvbuild.ports.engine import QueryError
from mvbuild.refresh.queries import diagnostic
from mvbuild.source import MappedText, Segment, SourceFile, SourceMap, Span

SQL = "SELECT v AS kind,\n  make_ym_interval(1) AS age,\n  named_struct('kind', NULL) AS st\nFROM raw.orders\n"


@pytest.mark.parametrize(
    ("message", "condition", "place", "help"),
    [
        (
            "Column 'age' has type interval year to month, which Iceberg cannot store.",
            "UNSTORABLE",
            "m.sql:2:26",
            "Give it a name and a type",
        ),
        ("Column 'st.kind' has type void, which Iceberg cannot store.", "UNSTORABLE", "m.sql:3:33", "Give it a name and a type"),
        ("2 columns are named 'age' or 'Age'; names must differ in more than case.", "DUPLICATE", "m.sql:2:26", "Rename one of them"),
        ("Column 'gone' has type void, which Iceberg cannot store.", "UNSTORABLE", "m.sql:1:1", "Give it a name and a type"),
    ],
)
def test_the_column_is_shown(message: str, condition: str, place: str, help: str) -> None:
    file = SourceFile(Path("m.sql"), SQL)
    found = diagnostic(QueryError(message, condition=f"mvbuild.{condition}_COLUMN"), MappedText.of(file), "m", file.line_span(1))
    assert found.code == ("bad-column" if condition == "UNSTORABLE" else "duplicate-column")
    assert str(found.span) == place
    assert help in found.help


def test_a_column_of_a_view_is_not_shown_in_the_file_of_the_view() -> None:
    own, view = SourceFile("m.sql", "SELECT *\nFROM v JOIN w"), SourceFile("v.sql", "SELECT 1 AS name")
    text = f"{own.text} ({view.text})"
    segments = (Segment(0, Span(own, 0, len(own.text)), True), Segment(len(own.text) + 2, Span(view, 0, len(view.text)), True))
    error = QueryError("2 columns are named 'name'; names must differ in more than case.", condition="mvbuild.DUPLICATE_COLUMN")
    found = diagnostic(error, MappedText(text, SourceMap(segments)), "m", own.line_span(1))
    assert str(found.span) == "m.sql:1:1"
