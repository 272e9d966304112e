"""Passwords and tokens in the lines of configuration files that diagnostics show, and in messages."""

from __future__ import annotations

import pytest

from mvbuild.diagnostics.render import without_secrets

LINES = [
    'header.Authorization: "Basic LEAKED"',
    "header.Cookie: a=LEAKED; b=LEAKED",
    "fs.azure.account.key.acc: LEAKED==",
    'adls.connection-string: "Endpoint=x;AccountKey=LEAKED;y"',
    'uri: "postgresql://u:LEA/KED@h/x"',
    "uri: postgresql://lake:LEAKED@LEAKED/LEAKED@host/db",
    "uri: jdbc:postgresql://host/db?user=u&password=LEAKED&ssl=true",
    "url: https://host/path?sv=1&sig=LEAKED%2F&z=2",
    "git: https://ghp_LEAKED@github.com/x.git",
    "url: https://hooks.slack.com/services/T0/B0/LEAKED",
    "password: LEAKED,LEAKED",
    "jdbc.pwd: LEAKED LEAKED # of the team",
    "api_key: 'LEAKED''LEAKED'",
    "token: {value: LEAKED}",
    "catalog: {type: rest, token: LEAKED, uri: http://h}",
    "s3.secret-access-key: LEAKED",
    "credential: id:LEAKED",
]


@pytest.mark.parametrize("line", LINES)
def test_a_secret_is_hidden_and_carets_keep_their_place(line: str) -> None:
    shown = without_secrets(line, is_line=True)
    assert "LEAK" not in shown
    assert "KED" not in shown
    assert len(shown) == len(line)


@pytest.mark.parametrize(
    "line",
    [
        "token: \"{{ env_var('TOKEN') }}\"",
        "uri: http://localhost:8181/catalog",
        "uri: abfss://container@account.dfs.core.windows.net/x",
        "oauth2-server-uri: https://login.example.com/oauth/tokens",
        "SELECT token, payload:token::string, pwd FROM t",
        "path: token-file.txt",
        "token:",
    ],
)
def test_what_is_no_secret_is_shown(line: str) -> None:
    assert without_secrets(line, is_line=True) == line


def test_the_key_after_a_secret_is_shown() -> None:
    shown = without_secrets("catalog: {type: rest, token: LEAKED, typ: x}", is_line=True)
    assert shown == "catalog: {type: rest, token: ******, typ: x}"


def test_a_message_goes_on_after_a_secret() -> None:
    assert without_secrets("401 for token: LEAKED, it has expired") == "401 for token: ******, it has expired"
