"""SQLAlchemy URL of a PostgreSQL database -> the options with which Spark's JDBC catalog reaches the same database."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from mvbuild.ports.engine import EngineError

_HOST_AND_USER = ("host", "port", "user", "password")
_RENAMED = {"application_name": "ApplicationName", "connect_timeout": "connectTimeout", "client_encoding": None}
"""Settings of libpq that have other names in Java, or none; `sslmode`, `sslrootcert`, `options` and others have the same names."""
_SESSIONS = {"read-write": "primary", "primary": "primary", "standby": "secondary", "prefer-standby": "preferSecondary", "any": "any"}


def jdbc_options(uri: str) -> dict[str, str]:
    """The password is a separate option, because messages show the address."""
    parts = urlsplit(uri)
    given = parse_qsl(parts.query, keep_blank_values=True)
    address = _address(parts, [value for key, value in given if key == "host"], dict(given).get("port", ""))
    settings = dict(_setting(key, value) for key, value in given if key not in _HOST_AND_USER and _RENAMED.get(key, key))
    query = urlencode(settings, safe="/", quote_via=quote)
    user = unquote(parts.username or "") or dict(given).get("user", "")
    password = unquote(parts.password or "") or dict(given).get("password", "")
    return {
        "uri": f"jdbc:postgresql://{address}{parts.path}{f'?{query}' if query else ''}",
        **({"jdbc.user": user} if user else {}),
        **({"jdbc.password": password} if password else {}),
    }


def _address(parts: Any, hosts: list[str], port: str) -> str:
    if any(host.startswith(("/", "@")) for host in hosts):
        raise EngineError("spark-start", f"Spark cannot reach PostgreSQL through the socket {hosts[0]}: Java needs a host and a port.")
    if not hosts:
        hosts = [f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or "localhost"]
        port = str(parts.port or port)
    return ",".join(host if not port or ":" in host.rpartition("]")[2] else f"{host}:{port}" for host in hosts)


def _setting(key: str, value: str) -> tuple[str, str]:
    if key == "target_session_attrs":
        return "targetServerType", _SESSIONS.get(value, "any")
    return _RENAMED.get(key) or key, value
