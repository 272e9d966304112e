"""configuration of a running Spark session -> its Iceberg catalogs, with the properties with which PyIceberg reaches them.

This is the inverse of `catalog_conf`, for readers that have a session and no project.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, urlencode

from mvbuild.adapters.spark.any_pyspark import all_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_PREFIX = "spark.sql.catalog."
_ICEBERG = ("org.apache.iceberg.spark.SparkCatalog", "org.apache.iceberg.spark.SparkSessionCatalog")
_IMPLEMENTATIONS = {
    "JdbcCatalog": "jdbc",
    "RESTCatalog": "rest",
    "HiveCatalog": "hive",
    "HadoopCatalog": "hadoop",
    "GlueCatalog": "glue",
}
_OF_JAVA = ("type", "catalog-impl", "io-impl", "uri", "jdbc.", "cache", "table-default.", "table-override.", "default-namespace", "hadoop.")
_LIBPQ = {"ApplicationName": "application_name", "connectTimeout": "connect_timeout"}
_OF_BOTH = ("sslmode", "sslrootcert", "sslcert", "sslkey", "options")


def session_catalogs(session: Any) -> dict[str, dict[str, str]]:
    """Name -> PyIceberg's properties, for each Iceberg catalog of a known kind, in the session's order."""
    conf = all_settings(session)
    names = [key.removeprefix(_PREFIX) for key, value in conf.items() if key.startswith(_PREFIX) and value in _ICEBERG]
    found = {name: catalog_properties(_options(conf, name), conf) for name in names}
    return {name: properties for name, properties in found.items() if properties is not None}


def current_place(session: Any) -> tuple[str, tuple[str, ...]]:
    """The current catalog and namespace of the session, which complete names."""
    return str(session.catalog.currentCatalog()), tuple(str(session.catalog.currentDatabase()).split("."))


def catalog_properties(options: Mapping[str, str], conf: Mapping[str, str]) -> dict[str, str] | None:
    """PyIceberg's properties for a catalog with these options in Spark. None for a kind that mvbuild does not know, or if Spark hides a
    secret. `conf`: the session's configuration, which may contain Hive's address."""
    kind = options.get("type") or _IMPLEMENTATIONS.get(options.get("catalog-impl", "").rpartition(".")[2], "")
    if not kind and "catalog-impl" not in options:
        kind = "hive"
    if kind not in _KINDS or any("(redacted)" in value for value in options.values()):
        return None
    own = _KINDS[kind](options, conf)
    return None if own is None else {**_shared(options), **own}


def _options(conf: Mapping[str, str], name: str) -> dict[str, str]:
    prefix = f"{_PREFIX}{name}."
    return {key.removeprefix(prefix): value for key, value in conf.items() if key.startswith(prefix)}


def _shared(options: Mapping[str, str]) -> dict[str, str]:
    found = {key: value for key, value in options.items() if not key.startswith(_OF_JAVA)}
    if "client.region" in found:
        found.setdefault("s3.region", found["client.region"])
        found.setdefault("glue.region", found["client.region"])
    if "s3.path-style-access" in found:
        found.setdefault("s3.force-virtual-addressing", str(found["s3.path-style-access"].lower() != "true").lower())
    return found


def _jdbc(options: Mapping[str, str], conf: Mapping[str, str]) -> dict[str, str] | None:  # noqa: ARG001
    scheme, _, rest = options.get("uri", "").removeprefix("jdbc:").partition(":")
    if scheme == "sqlite":
        path = rest.removeprefix("file:").partition("?")[0]
        return {"type": "sql", "uri": f"sqlite:///{path}"}
    if scheme == "postgresql":
        return {"type": "sql", "uri": _postgresql(rest, options)}
    return None


def _postgresql(rest: str, options: Mapping[str, str]) -> str:
    """`//host:port/db?settings`, with the names of libpq."""
    address, _, query = rest.removeprefix("//").partition("?")
    hosts, _, database = address.partition("/")
    given = dict(parse_qsl(query, keep_blank_values=True))
    user = options.get("jdbc.user") or given.get("user", "")
    password = options.get("jdbc.password") or given.get("password", "")
    settings = [(_LIBPQ.get(key, key), value) for key, value in given.items() if key in _LIBPQ or key in _OF_BOTH]
    login = quote(user, safe="") + (f":{quote(password, safe='')}" if password else "") + ("@" if user else "")
    several = hosts.split(",")
    if len(several) > 1:
        settings, hosts = [*(("host", host) for host in several), *settings], ""
    return f"postgresql+psycopg2://{login}{hosts}/{database}{f'?{urlencode(settings)}' if settings else ''}"


def _hive(options: Mapping[str, str], conf: Mapping[str, str]) -> dict[str, str] | None:
    uri = options.get("uri") or conf.get("spark.hadoop.hive.metastore.uris") or conf.get("hive.metastore.uris")
    return {"type": "hive", "uri": uri} if uri else None


def _rest(options: Mapping[str, str], conf: Mapping[str, str]) -> dict[str, str] | None:  # noqa: ARG001
    return {"type": "rest", "uri": options["uri"]} if options.get("uri") else None


def _plain(kind: str) -> Callable[[Mapping[str, str], Mapping[str, str]], dict[str, str]]:
    return lambda options, conf: {"type": kind}  # noqa: ARG005


_KINDS: Mapping[str, Callable[[Mapping[str, str], Mapping[str, str]], dict[str, str] | None]] = {
    "jdbc": _jdbc,
    "rest": _rest,
    "hive": _hive,
    "hadoop": _plain("hadoop"),
    "glue": _plain("glue"),
}
