"""catalog name and PyIceberg properties -> the Spark configuration of the same catalog."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from mvbuild.adapters.spark.postgresql import jdbc_options
from mvbuild.ports.engine import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"

_BUSY_MS = "60000"
_S3_FILE_IO = "org.apache.iceberg.aws.s3.S3FileIO"
_S3_SCHEMES = ("s3://", "s3a://", "s3n://")
_RENAMED = {
    "client.access-key-id": "s3.access-key-id",
    "client.secret-access-key": "s3.secret-access-key",
    "client.session-token": "s3.session-token",
    "s3.region": "client.region",
    "glue.region": "client.region",
}
_REGIONS = ("client.region", "s3.region", "glue.region")
_GLUE_KEYS = ("glue.access-key-id", "client.access-key-id", "glue.profile-name", "client.profile-name")
_PYTHON_ONLY = (
    "type",
    "uri",
    "py-",
    "downcast-",
    "auth",
    "ssl",
    "echo",
    "pool_pre_ping",
    "init_catalog_tables",
    "s3.force-virtual-addressing",
    "s3.resolve-region",
    "hive.",
    "lock-check-",
    "ugi",
)


def catalog_conf(name: str, properties: Mapping[str, str]) -> dict[str, str]:
    """Every key that Spark needs for the catalog. Raises EngineError for a type that mvbuild cannot configure in Spark."""
    settings = resolved(name, properties)
    kind = settings["type"].lower()
    if kind not in _TYPES:
        known = ", ".join(sorted(_TYPES))
        raise EngineError(
            "spark-start", f"Catalog '{name}' has type '{kind}', which mvbuild cannot configure in Spark; supported types: {known}."
        )
    prefix = f"spark.sql.catalog.{name}"
    options = {"cache-enabled": "false", **_passed_on(settings), **_files(settings), **_TYPES[kind](name, settings)}
    return {
        prefix: "org.apache.iceberg.spark.SparkCatalog",
        **{f"{prefix}.{key}": value for key, value in options.items()},
    }


def resolved(name: str, properties: Mapping[str, str]) -> dict[str, str]:
    """With PyIceberg's own configuration of a catalog that is only named, and with the type that PyIceberg infers from the uri."""
    settings = dict(properties)
    if not settings.keys() & {"type", "uri"}:
        from pyiceberg.utils.config import Config

        settings = {key: str(value) for key, value in (Config().get_catalog_config(name) or {}).items()} | settings
    settings.setdefault("type", _inferred(settings.get("uri", "")))
    return settings


def uses_s3(settings: Mapping[str, str]) -> bool:
    """Whether the files of the catalog are, or may be, in S3."""
    return (
        settings.get("type", "").lower() == "glue"
        or settings.get("warehouse", "").startswith(_S3_SCHEMES)
        or "S3FileIO" in settings.get("io-impl", "")
        or any(key.startswith("s3.") for key in settings)
    )


def _inferred(uri: str) -> str:
    scheme = uri.partition("://")[0].split("+")[0]
    return {"http": "rest", "https": "rest", "thrift": "hive", "sqlite": "sql", "postgresql": "sql", "postgres": "sql"}.get(scheme, scheme)


def _passed_on(settings: Mapping[str, str]) -> dict[str, str]:
    kept = {key: value for key, value in settings.items() if not key.startswith(_PYTHON_ONLY)}
    renamed = {_RENAMED[key]: value for key, value in kept.items() if key in _RENAMED}
    return renamed | {key: value for key, value in kept.items() if key not in _RENAMED}


def _files(settings: Mapping[str, str]) -> dict[str, str]:
    if not uses_s3(settings):
        return {}
    options = {} if "io-impl" in settings or settings["type"] == "rest" else {"io-impl": _S3_FILE_IO}
    if "s3.endpoint" in settings and "s3.path-style-access" not in settings:
        # PyIceberg's default if the endpoint is not Amazon's own.
        options["s3.path-style-access"] = str(settings.get("s3.force-virtual-addressing", "false").lower() != "true").lower()
    if "s3.endpoint" in settings and not settings.keys() & {*_REGIONS}:
        # Amazon's client requires a region, even if the server ignores it.
        options["client.region"] = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
    return options


def _sql(name: str, settings: Mapping[str, str]) -> dict[str, str]:
    uri = settings.get("uri", "")
    scheme = uri.partition("://")[0].split("+")[0]
    if scheme not in _DATABASES:
        raise EngineError(
            "spark-start", f"Catalog '{name}' stores its tables in a '{scheme}' database; Spark supports sqlite and postgresql."
        )
    return {"type": "jdbc", "jdbc.schema-version": "V1", **_DATABASES[scheme](uri)}


def _sqlite(uri: str) -> dict[str, str]:
    path = uri.partition("://")[2].removeprefix("/").partition("?")[0]
    # The driver's default timeout is 3 seconds, and without WAL a reader blocks the writer.
    return {"uri": f"jdbc:sqlite:{Path(path).absolute()}", "jdbc.busy_timeout": _BUSY_MS, "jdbc.journal_mode": "WAL"}


def _with_uri(kind: str) -> Callable[[str, Mapping[str, str]], dict[str, str]]:
    def options(name: str, settings: Mapping[str, str]) -> dict[str, str]:
        if "uri" not in settings:
            raise EngineError("spark-start", f"Catalog '{name}' has type {kind} but no 'uri'.")
        return {"type": kind, "uri": settings["uri"]}

    return options


def _glue(name: str, settings: Mapping[str, str]) -> dict[str, str]:
    given = [key for key in _GLUE_KEYS if key in settings]
    if given and "client.credentials-provider" not in settings:
        raise EngineError(
            "spark-start",
            f"Catalog '{name}' has '{given[0]}', which Spark's Glue client does not accept.",
            help="Pass the keys in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile in AWS_PROFILE.",
        )
    return {"type": "glue"}


def _plain(kind: str) -> Callable[[str, Mapping[str, str]], dict[str, str]]:
    return lambda name, settings: {"type": kind}  # noqa: ARG005


_DATABASES: dict[str, Callable[[str], dict[str, str]]] = {
    "sqlite": _sqlite,
    "postgresql": jdbc_options,
    "postgres": jdbc_options,
}
_TYPES: dict[str, Callable[[str, Mapping[str, str]], dict[str, str]]] = {
    "sql": _sql,
    "rest": _with_uri("rest"),
    "hive": _with_uri("hive"),
    "glue": _glue,
    "hadoop": _plain("hadoop"),
}
