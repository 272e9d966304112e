from __future__ import annotations

import pytest

from mvbuild.adapters.spark.postgresql import jdbc_options
from mvbuild.ports.engine import EngineError


@pytest.mark.parametrize(
    ("uri", "address"),
    [
        ("postgresql+psycopg2://h/lake", "h/lake"),
        ("postgresql:///lake", "localhost/lake"),
        ("postgresql://[::1]:5433/lake", "[::1]:5433/lake"),
        ("postgresql:///lake?host=a:1&host=b&port=7", "a:1,b:7/lake"),
        ("postgresql://h/lake?sslmode=verify-full&sslrootcert=/etc/ca.pem", "h/lake?sslmode=verify-full&sslrootcert=/etc/ca.pem"),
        ("postgresql://h/d?connect_timeout=3&application_name=m%20v&client_encoding=utf8", "h/d?connectTimeout=3&ApplicationName=m%20v"),
        ("postgresql://h/d?options=-csearch_path%3Dlake", "h/d?options=-csearch_path%3Dlake"),
        ("postgresql://a/d?target_session_attrs=read-write", "a/d?targetServerType=primary"),
    ],
)
def test_addresses(uri: str, address: str) -> None:
    assert jdbc_options(uri) == {"uri": f"jdbc:postgresql://{address}"}


@pytest.mark.parametrize("uri", ["postgresql://me:p%40s%2Fs@h/d", "postgresql://h/d?user=me&password=p%40s%2Fs"])
def test_users_and_passwords_are_no_part_of_the_address(uri: str) -> None:
    assert jdbc_options(uri) == {"uri": "jdbc:postgresql://h/d", "jdbc.user": "me", "jdbc.password": "p@s/s"}


def test_a_socket_of_unix() -> None:
    with pytest.raises(EngineError, match="socket /run/postgresql"):
        jdbc_options("postgresql:///lake?host=/run/postgresql")
