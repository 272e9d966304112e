from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from mvbuild.diagnostics import ProjectError
from mvbuild.project.seeds import SeedRows, read, seed_problems
from unit.project.project_on_disk import errors, load, places


def seed_of(root: Path, csv: str | bytes, yaml: str = "", **files: str):
    described = {"seeds/s.yml": "seeds:\n  - name: s\n" + yaml} if yaml else {}
    return load(root, {"seeds/s.csv": csv, **described, **files}).seeds[0]


def rows(root: Path, csv: str | bytes, types: str = "") -> SeedRows:
    return read(seed_of(root, csv, f"    config: {{column_types: {{{types}}}}}\n" if types else ""))


def mistakes(root: Path, csv: str | bytes, types: str = "") -> list[Any]:
    with pytest.raises(ProjectError) as caught:
        rows(root, csv, types)
    assert all(d.help for d in caught.value.diagnostics)
    return list(caught.value.diagnostics)


def test_undeclared_columns_are_strings_and_only_unquoted_empty_fields_are_null(tmp_path: Path) -> None:
    found = rows(tmp_path, '\ufeffa,b,c\r\n1,,""\r\n"x ""y"", z","two\r\nlines",5" pipe\r\n\r\n,"",\r\n')
    assert found.names == ("a", "b", "c")
    assert found.types == ("string", "string", "string")
    assert found.columns == (("1", 'x "y", z', None), (None, "two\nlines", ""), ("", '5" pipe', None))


@pytest.mark.parametrize(
    ("type_", "iceberg", "text", "value"),
    [
        ("boolean", "boolean", "TRUE", True),
        ("boolean", "boolean", "f", False),
        ("tinyint", "int", "-128", -128),
        ("smallint", "int", "32767", 32767),
        ("int", "int", "-2147483648", -2147483648),
        ("integer", "int", " 7 ", 7),
        ("bigint", "long", "9223372036854775807", 9223372036854775807),
        ("float", "float", "1.5", 1.5),
        ("double", "double", "1e300", 1e300),
        ("double", "double", "-Infinity", float("-inf")),
        ("'decimal(5,2)'", "decimal(5,2)", "-123.40", Decimal("-123.40")),
        ("'decimal(5,2)'", "decimal(5,2)", "1.500", Decimal("1.50")),
        ("'decimal(5, 2)'", "decimal(5,2)", "1e2", Decimal("100.00")),
        ("numeric", "decimal(10,0)", "12", Decimal(12)),
        (
            "'decimal(38,38)'",
            "decimal(38,38)",
            "0.12345678901234567890123456789012345678",
            Decimal("0.12345678901234567890123456789012345678"),
        ),
        ("varchar(3)", "string", "abc", "abc"),
        ("text", "string", " x ", " x "),
        ("date", "date", "2024-02-29", date(2024, 2, 29)),
        ("timestamp", "timestamptz", "2026-01-31 09:30:00", datetime(2026, 1, 31, 9, 30, tzinfo=timezone.utc)),
        ("timestamp", "timestamptz", "2026-01-31T09:30:00.25+02:00", datetime(2026, 1, 31, 7, 30, 0, 250_000, tzinfo=timezone.utc)),
        ("timestamp_ntz", "timestamp", "2026-01-31", datetime(2026, 1, 31)),
        ("binary", "binary", "0xCAFE", b"\xca\xfe"),
    ],
)
def test_types(tmp_path: Path, type_: str, iceberg: str, text: str, value: Any) -> None:
    quoted = type_ if type_.startswith("'") else f"'{type_}'"
    found = rows(tmp_path, f"k,v\n1,{text}\n2,\n", f"V: {quoted}")
    assert found.types == ("string", iceberg)
    assert found.columns[1] == (value, None)
    assert type(found.columns[1][0]) is type(value)
    assert repr(found.columns[1][0]) == repr(value)


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        ("boolean", "maybe"), ("tinyint", "128"), ("smallint", "-32769"), ("int", "2147483648"), ("int", "1.0"), ("int", "1_000"),
        ("bigint", "9223372036854775808"), ("int", "9" * 5000), ("float", "1e39"), ("double", "1e999"), ("double", "1_0"),
        ("double", "0x1"),
        ("decimal(5,2)", "1000"), ("decimal(5,2)", "1.005"), ("decimal(5,2)", "1e999999"), ("decimal(5,2)", "1e99999999999999999999"),
        ("decimal(5,2)", "NaN"), ("date", "2023-02-29"), ("date", "20240229"), ("timestamp", "2026-01-31 25:00:00"), ("timestamp", "noon"),
        ("timestamp", "0001-01-01 00:00:00+05:00"), ("timestamp", "2026-01-31 09:30:00.1234567"), ("timestamp", "2026-01-31 09:30+99:00"),
        ("timestamp_ntz", "2026-01-31 09:30:00Z"), ("varchar(3)", "abcd"), ("binary", "0xABC"), ("int", '""'), ("int", "١"),
    ],
)  # fmt: skip
def test_a_bad_value_has_its_place(tmp_path: Path, type_: str, text: str) -> None:
    (wrong,) = mistakes(tmp_path, f'k,v,w\n"two\nlines",{1 if "char" in type_ else ""},x\nb,{text},y\n', f"v: '{type_}'")
    assert (wrong.code, str(wrong.span), wrong.span.text) == ("bad-seed", "seeds/s.csv:4:3", text)
    assert "Row 2, column 'v'" in wrong.message


def test_places_after_quoted_fields(tmp_path: Path) -> None:
    found = mistakes(tmp_path, 'a,b,c\n"x, ""y""",7,1\nx,"bad","z"\n', "b: int, c: int")
    assert [(str(d.span), d.span.text) for d in found] == [("seeds/s.csv:3:3", '"bad"'), ("seeds/s.csv:3:9", '"z"')]


@pytest.mark.parametrize(
    ("csv", "places_"),
    [
        ("", ["1:1"]),
        ("a,,b\n1,2,3\n", ["1:3"]),
        ("a,b,A\n1,2,3\n", ["1:5"]),
        ("a,b\n1\n1,2\n1,2,3,4\n", ["2:1", "4:5"]),
        ('a,b\n1,"x\n2,y\n', ["2:3"]),
        ('a,b\n"x"y,2\n', ["2:1"]),
    ],
)
def test_bad_files(tmp_path: Path, csv: str, places_: list[str]) -> None:
    assert places(mistakes(tmp_path, csv)) == [("bad-seed", f"seeds/s.csv:{p}") for p in places_]


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (wrong,) = mistakes(tmp_path, b"a,b\n1,\xe9t\xe9\n")
    assert (wrong.code, str(wrong.span)) == ("unreadable-file", "seeds/s.csv:2:3")


def test_a_declared_column_that_is_not_there(tmp_path: Path) -> None:
    yaml = "    config: {column_types: {idd: int}}\n    columns:\n      - {name: naem, data_type: string}\n"
    with pytest.raises(ProjectError) as caught:
        read(seed_of(tmp_path, "id,name\n1,x\n", yaml))
    assert sorted((d.code, str(d.span), d.help) for d in caught.value.diagnostics) == [
        ("bad-seed", "seeds/s.yml:3:29", "Did you mean 'id'?"),
        ("bad-seed", "seeds/s.yml:5:16", "Did you mean 'name'?"),
    ]


def test_types_come_from_columns_and_column_types_win(tmp_path: Path) -> None:
    yaml = "    config: {column_types: {a: bigint}}\n    columns: [{name: A, data_type: date}, {name: b, data_type: date}]\n"
    assert read(seed_of(tmp_path, "a,b\n1,2026-01-31\n", yaml)).types == ("long", "date")


def test_an_unknown_type_is_found_when_the_project_is_loaded(tmp_path: Path) -> None:
    yaml = (
        "seeds:\n  - name: s\n    config: {column_types: {a: intt, b: 'decimal(40,2)'}}\n    columns: [{name: c, data_type: array<int>}]\n"
    )
    found = errors(tmp_path, {"seeds/s.csv": "a,b,c\n", "seeds/s.yml": yaml})
    assert sorted(places(found)) == [
        ("wrong-type", "seeds/s.yml:3:32"),
        ("wrong-type", "seeds/s.yml:3:41"),
        ("wrong-type", "seeds/s.yml:4:36"),
    ]
    assert any(d.help == "Did you mean 'int'?" for d in found)


def test_at_most_fifty_and_a_count(tmp_path: Path) -> None:
    found = mistakes(tmp_path, "a\n" + "x\n" * 1234, "a: int")
    assert len(found) == 51
    assert found[50].message == "and 1,184 more errors in this file"


def test_the_delimiter_and_the_checksum(tmp_path: Path) -> None:
    yaml = "    config: {delimiter: ';', column_types: {a: int}}\n"
    seed = seed_of(tmp_path, "a;b\n1;x,y\n", yaml)
    assert read(seed).columns == ((1,), ("x,y",))
    same = seed_of(tmp_path, "a;b\n1;x,y\n", yaml.replace("int", "integer"))
    assert seed_of(tmp_path, "\ufeffa;b\n1;x,y\n", yaml).checksum == seed.checksum
    assert same.checksum == seed.checksum == seed_of(tmp_path, "a;b\r\n1;x,y\r\n", yaml).checksum
    assert len(seed.checksum) == 64
    others = {
        seed_of(tmp_path, "a;b\n1;x,y\n", yaml.replace("int", "bigint")).checksum,
        seed_of(tmp_path, "a;b\n1;x,y\n", yaml.replace("';'", "','")).checksum,
        seed_of(tmp_path, "a;b\n1;x,z\n", yaml).checksum,
    }
    assert len(others | {seed.checksum}) == 4


def test_check_reports_all_seeds_at_once(tmp_path: Path) -> None:
    project = load(tmp_path, {"seeds/a.csv": "x,x\n", "seeds/b.csv": "y\n1,2\n", "seeds/c.csv": "z\n"})
    assert places(list(seed_problems(project.seeds))) == [("bad-seed", "seeds/a.csv:1:3"), ("bad-seed", "seeds/b.csv:2:3")]


def test_a_header_alone_is_an_empty_seed(tmp_path: Path) -> None:
    found = rows(tmp_path, "a,b\n", "a: int")
    assert (found.types, found.columns) == (("int", "string"), ((), ()))
