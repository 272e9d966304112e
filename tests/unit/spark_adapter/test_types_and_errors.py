from __future__ import annotations

import pytest
from pyiceberg.schema import Schema
from pyspark.errors import PySparkException
from pyspark.sql import types as t

from mvbuild.adapters.spark.errors import message_of, place_of, translated
from mvbuild.adapters.spark.types import iceberg_schema
from mvbuild.ports.catalog import CommitConflict
from mvbuild.ports.engine import QueryError


def test_ids_are_unique_and_top_level_fields_come_first() -> None:
    inner = t.StructType([t.StructField("x", t.DecimalType(38, 9)), t.StructField("y", t.ArrayType(t.TimestampNTZType()))])
    schema = t.StructType(
        [
            t.StructField("a", t.ByteType(), nullable=False),
            t.StructField("m", t.MapType(t.StringType(), inner)),
            t.StructField("z", t.VarcharType(9)),
        ]
    )
    assert iceberg_schema(schema) == {
        "type": "struct",
        "schema-id": 0,
        "fields": [
            {"id": 1, "name": "a", "required": False, "type": "int"},
            {
                "id": 2,
                "name": "m",
                "required": False,
                "type": {
                    "type": "map",
                    "key-id": 4,
                    "key": "string",
                    "value-id": 5,
                    "value": {
                        "type": "struct",
                        "fields": [
                            {"id": 6, "name": "x", "required": False, "type": "decimal(38, 9)"},
                            {
                                "id": 7,
                                "name": "y",
                                "required": False,
                                "type": {"type": "list", "element-id": 8, "element": "timestamp", "element-required": False},
                            },
                        ],
                    },
                    "value-required": False,
                },
            },
            {"id": 3, "name": "z", "required": False, "type": "string"},
        ],
    }
    Schema.model_validate(iceberg_schema(schema))


def test_every_problem_is_told_at_once() -> None:
    nested = t.StructType([t.StructField("p", t.IntegerType()), t.StructField("P", t.NullType())])
    schema = t.StructType(
        [
            t.StructField("a", nested),
            t.StructField("b", t.DayTimeIntervalType()),
            t.StructField("c", t.MapType(t.StringType(), t.StructType())),
            t.StructField("_pos", t.IntegerType()),
            t.StructField("d", t.StructType([t.StructField("_file", t.IntegerType())])),
        ]
    )
    with pytest.raises(QueryError) as caught:
        iceberg_schema(schema)
    assert str(caught.value) == (
        "2 columns or fields have the path 'a.p' or 'a.P'; names must differ in more than case. "
        "Column 'a.P' has type void, which Iceberg cannot store. "
        "Column 'b' has type interval day to second, which Iceberg cannot store. "
        "Column 'c.value' is a struct without fields, which Iceberg cannot store. "
        "Column '_pos' has a name that Iceberg reserves, and Spark cannot read a table with it."
    )


X = t.StructType([t.StructField("x", t.IntegerType())])


@pytest.mark.parametrize(
    ("first", "name"),
    [
        (X, "st.x"),
        (X, "ST.X"),
        (t.ArrayType(t.IntegerType()), "st.element"),
        (t.ArrayType(X), "st.element.x"),
        (t.MapType(t.StringType(), t.IntegerType()), "st.value"),
        (t.StructType([t.StructField("a", X), t.StructField("a.x", t.IntegerType())]), "y"),
    ],
)
def test_a_column_named_like_the_path_of_a_field(first: t.DataType, name: str) -> None:
    """Iceberg finds columns by these paths, and tries for minutes to load a table in which two are equal."""
    with pytest.raises(QueryError, match=r"\A2 columns or fields have the path [^;]*; names must differ in more than case\.\Z"):
        iceberg_schema(t.StructType([t.StructField("st", first), t.StructField(name, t.IntegerType())]))


def test_a_dot_in_a_name_alone_is_no_problem() -> None:
    schema = t.StructType([t.StructField("st", X), t.StructField("st.y", t.IntegerType()), t.StructField("a.b", X)])
    Schema.model_validate(iceberg_schema(schema))


def test_a_column_without_a_name() -> None:
    with pytest.raises(QueryError, match="Column 2 has an empty name"):
        iceberg_schema(t.StructType([t.StructField("a", t.IntegerType()), t.StructField("", t.IntegerType())]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[A.B_C] It failed. SQLSTATE: 42703; line 1 pos 2;\n'Project ['x]\n+- OneRowRelation", "It failed."),
        (
            "\n[PARSE_SYNTAX_ERROR] Syntax error at or near 'x'. SQLSTATE: 42601 (line 1, pos 0)\n\n== SQL ==\nx\n^^^\n",
            "Syntax error at or near 'x'.",
        ),
        ("org.apache.spark.SparkException: [X] Boo. SQLSTATE: 21000\n\tat a.b.C(D.java:1)", "Boo."),
        ("Cannot find `[a]` in table", "Cannot find `[a]` in table"),
        ("", ""),
    ],
)
def test_messages_without_noise(text: str, message: str) -> None:
    assert message_of(text) == message


def test_places_by_line_and_column() -> None:
    sql = "SELECT 1,\n  `a b` + nope x\n"
    assert place_of("(line 2, pos 2)", sql) == (12, 17)
    assert place_of("; line 2 pos 10;", sql) == (20, 24)
    assert place_of("(line 2, pos 99)", sql) == (25, 26)
    assert place_of("(line 7, pos 1)", sql) is None
    assert place_of("no place", sql) is None


def test_a_table_that_is_dropped_meanwhile_is_a_conflict() -> None:
    """As Spark Connect sends it: `migrate` dropped a storage table that a run was writing to."""
    kind, message = (
        "org.apache.iceberg.exceptions.NoSuchTableException",
        "Failed to load table a.b from catalog lake: dropped by another process",
    )
    with pytest.raises(CommitConflict, match="dropped by another process"), translated("SELECT 1"):
        raise PySparkException(f"({kind}) {message}")
