from __future__ import annotations

from pathlib import Path

import pytest

from mvbuild.adapters.spark.catalog_conf import catalog_conf
from mvbuild.ports.engine import EngineError


def options(**properties: str) -> dict[str, str]:
    """The options of catalog `lake`, without the prefix; `__` in a name is a dot, `_` a hyphen."""
    named = {key.replace("__", ".").replace("_", "-"): value for key, value in properties.items()}
    conf = catalog_conf("lake", named)
    assert conf.pop("spark.sql.catalog.lake") == "org.apache.iceberg.spark.SparkCatalog"
    return {key.removeprefix("spark.sql.catalog.lake."): value for key, value in conf.items()}


def test_sqlite() -> None:
    assert options(type="sql", uri="sqlite:////data/c.db", warehouse="file:///data/wh") == {
        "type": "jdbc",
        "uri": "jdbc:sqlite:/data/c.db",
        "jdbc.schema-version": "V1",
        "jdbc.busy_timeout": "60000",
        "jdbc.journal_mode": "WAL",
        "warehouse": "file:///data/wh",
        "cache-enabled": "false",
    }


def test_a_relative_sqlite_file_and_no_type() -> None:
    assert options(uri="sqlite:///c.db")["uri"] == f"jdbc:sqlite:{Path.cwd()}/c.db"


def test_postgresql() -> None:
    found = options(type="sql", uri="postgresql+psycopg2://me:p%40ss@db.example:5433/lake?sslmode=require", warehouse="s3://b/wh")
    assert found["uri"] == "jdbc:postgresql://db.example:5433/lake?sslmode=require"
    assert (found["jdbc.user"], found["jdbc.password"]) == ("me", "p@ss")
    assert found["io-impl"] == "org.apache.iceberg.aws.s3.S3FileIO"


def test_rest() -> None:
    found = options(
        type="rest", uri="http://c:8181", warehouse="wh", credential="id:secret", scope="all", oauth2_server_uri="http://o", token="t"
    )
    expected = {"type": "rest", "uri": "http://c:8181", "warehouse": "wh", "credential": "id:secret", "scope": "all", "token": "t"}
    assert found == {**expected, "oauth2-server-uri": "http://o", "cache-enabled": "false"}


def test_s3_settings_under_the_names_of_java() -> None:
    found = options(
        type="sql", uri="sqlite:////c.db", warehouse="s3://b", s3__endpoint="http://m:9000", s3__region="eu", s3__access_key_id="k"
    )
    assert (found["client.region"], found["s3.path-style-access"], found["s3.access-key-id"]) == ("eu", "true", "k")
    assert "s3.region" not in found


def test_glue_hive_and_hadoop() -> None:
    assert options(type="glue", warehouse="s3://b", glue__region="eu")["client.region"] == "eu"
    assert options(type="hive", uri="thrift://h:9083")["uri"] == "thrift://h:9083"
    assert options(type="hadoop", warehouse="file:///wh") == {"type": "hadoop", "warehouse": "file:///wh", "cache-enabled": "false"}


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({"type": "dynamodb"}, "type 'dynamodb'"),
        ({"type": "sql", "uri": "mysql://h/d"}, "'mysql' database"),
        ({"type": "rest"}, "no 'uri'"),
    ],
)
def test_what_spark_cannot_do(properties: dict[str, str], reason: str) -> None:
    with pytest.raises(EngineError, match=reason) as caught:
        catalog_conf("lake", properties)
    assert caught.value.code == "spark-start"
