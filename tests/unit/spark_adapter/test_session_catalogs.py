"""Spark's configuration of a catalog -> the properties with which mvbuild opens it, and back."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from mvbuild.adapters.spark.catalog_conf import catalog_conf
from mvbuild.adapters.spark.session_catalogs import session_catalogs
from unit.spark_adapter.settings import conf_with


def session(conf: dict[str, str]) -> Any:
    return SimpleNamespace(conf=conf_with(conf))


@pytest.mark.parametrize(
    "properties",
    [
        {"type": "sql", "uri": "sqlite:////data/catalog.db", "warehouse": "file:///data/warehouse"},
        {"type": "sql", "uri": "postgresql+psycopg2://lake:p%40ss@db:5432/lake?sslmode=require", "warehouse": "s3://lake/w"},
        {"type": "sql", "uri": "postgresql+psycopg2://db:5432/lake", "warehouse": "/w"},
        {"type": "rest", "uri": "https://catalog/api", "warehouse": "lake", "prefix": "p", "token": "t", "scope": "s"},
        {"type": "hive", "uri": "thrift://one:9083,thrift://two:9083", "warehouse": "/w"},
        {"type": "hadoop", "warehouse": "/data/warehouse"},
        {"type": "glue", "warehouse": "s3://lake", "glue.region": "eu-central-1"},
    ],
    ids=lambda p: p["type"],
)
def test_a_catalog_that_mvbuild_configured_is_found_again(properties: dict[str, str]) -> None:
    found = session_catalogs(session({"spark.app.name": "x", **catalog_conf("lake", properties)}))["lake"]
    assert {key: found.get(key) for key in properties} == properties


def test_settings_of_the_store_mean_the_same() -> None:
    settings = {"s3.endpoint": "http://minio:9000", "s3.region": "eu-1", "s3.access-key-id": "k", "s3.secret-access-key": "x"}
    conf = catalog_conf("lake", {"type": "rest", "uri": "http://catalog", **settings})
    found = session_catalogs(session(conf))["lake"]
    assert {key: found.get(key) for key in settings} == settings
    assert found["s3.force-virtual-addressing"] == "false"


def test_implementations_by_their_class_and_catalogs_of_others() -> None:
    iceberg = "org.apache.iceberg.spark.SparkCatalog"
    conf = {
        "spark.sql.catalog.a": iceberg,
        "spark.sql.catalog.a.catalog-impl": "org.apache.iceberg.rest.RESTCatalog",
        "spark.sql.catalog.a.uri": "http://a",
        "spark.sql.catalog.b": iceberg,
        "spark.sql.catalog.b.catalog-impl": "com.example.OwnCatalog",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalog.c": iceberg,
        "spark.hadoop.hive.metastore.uris": "thrift://c:9083",
        "spark.sql.catalog.d": iceberg,
        "spark.sql.catalog.d.type": "rest",
        "spark.sql.catalog.d.uri": "http://d",
        "spark.sql.catalog.d.token": "*********(redacted)",
        "spark.sql.catalog.e": iceberg,
        "spark.sql.catalog.e.type": "jdbc",
        "spark.sql.catalog.e.uri": "jdbc:oracle:thin:@db",
    }
    assert session_catalogs(session(conf)) == {"a": {"type": "rest", "uri": "http://a"}, "c": {"type": "hive", "uri": "thrift://c:9083"}}


def test_several_hosts_of_postgresql() -> None:
    uri = "postgresql+psycopg2://u@/db?host=one:1&host=two:2"
    conf = catalog_conf("lake", {"type": "sql", "uri": uri})
    assert session_catalogs(session(conf))["lake"]["uri"] == "postgresql+psycopg2://u@/db?host=one%3A1&host=two%3A2"
