"""Secrets in files: what is recognized as one, what is not, and that no output repeats one."""

from __future__ import annotations

from pathlib import Path

import pytest

from mvbuild.diagnostics.render import to_text
from mvbuild.lint.output import to_github, to_json, to_sarif
from mvbuild.lint.rules.secrets import secrets
from mvbuild.source import SourceFile
from unit.lint.linted import QUIET, report, shop

# Put together here, so that no scanner takes this file for one with secrets.
AWS, GITHUB, DATABRICKS = "AKIA" + "ABCDEFGH12345678", "ghp_" + "a1B2" * 10, "dapi" + "0123456789abcdef" * 2
JWT = "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0In0" + ".abcdefghijk"
KEY = "-----BEGIN RSA PRIVATE " + "KEY-----\nabc\n-----END RSA PRIVATE KEY-----"

IN_YAML = [
    ("password: hunter2hunter2", "hunter2hunter2"),
    ("password: 123456", "123456"),
    ("a: {b: {s3.secret-access-key: 'abc/def+1'}}", "'abc/def+1'"),
    ("fs.azure.account.key.shop.dfs.core.windows.net: c2VjcmV0", "c2VjcmV0"),
    ("clientSecret: abcdefgh", "abcdefgh"),
    ("api_key: |\n  abcdefgh\n", "|\n  abcdefgh"),
    ("- token: abcdefgh", "abcdefgh"),
    ("uri: postgresql://shop:hunter2@db/lake", "hunter2"),
    (f"# {AWS}", AWS),
    (f"x: {GITHUB}", GITHUB),
    ("token: \"{{ env_var('TOKEN', 'abcdefgh') }}\"", "abcdefgh"),
    ("uri: 'AccountName=a;AccountKey=c2VjcmV0c2VjcmV0c2VjcmV0=='", "c2VjcmV0c2VjcmV0c2VjcmV0=="),
    ("password: \"{{ env_var('PASSWORD') }}\"", None),
    ("token: \"{{ env_var('TOKEN', '') }}\"", None),
    ("token:", None),
    ("token: true", None),
    ("token: <your token>", None),
    ("token: ${TOKEN}", None),
    ("password: '****'", None),
    ("- name: token\n  description: The token of a session.", None),
    ("primary_key: id", None),
    ("tokens_per_day: 5", None),
    ("token_type: bearer", None),
    ("oauth2-server-uri: https://auth.example.com/token", None),
    ("uri: https://example.com:8443/a@b", None),
    ("uri: \"postgresql://shop:{{ env_var('P') }}@db/lake\"", None),
]
IN_SQL = [
    ("{% set api_token = 'abcdefgh' %}", "abcdefgh"),
    ("{{ config(meta={'a': 1}, password=\"abcdefgh\") }}", "abcdefgh"),
    ("select * from read_it(url => 'x', password => 'abcdefgh')", "abcdefgh"),
    ("select aes_encrypt(name, 'abcdefghijklmnop') from t", "abcdefghijklmnop"),
    (f"select '{DATABRICKS}' as x", DATABRICKS),
    (f"-- {JWT}", JWT),
    (f"/* {KEY} */", KEY),
    ("select 1 from t where token = 'abcdefgh'", None),
    ("select password, 'abcdefgh' as secret from t", None),
    ("select 'https://a:8080/b' as url, 'a@b.c' as mail", None),
    ("{% set password = var('p') %}", None),
    ("select aes_encrypt(name, key_column) from t", None),
    ("select '00000000-0000-0000-0000-000000000000' as id, sha2('abcdefgh', 256) as hash", None),
]


@pytest.mark.parametrize(("path", "text", "secret"), [*(("m.yml", *c) for c in IN_YAML), *(("m.sql", *c) for c in IN_SQL)])
def test_what_is_taken_for_a_secret(path: str, text: str, secret: str | None) -> None:
    assert [span.text for _, span in secrets(SourceFile(path, text))] == ([secret] if secret else [])


@pytest.mark.parametrize(
    "text", ["password: 'a", "a: [", "- " * 3000 + "password: x", "&a [*a, password]", "password: [a, b]", "\x00password: x"]
)
def test_yaml_that_cannot_be_read_raises_nothing(text: str) -> None:
    secrets(SourceFile("m.yml", text))


def test_no_output_shows_a_secret(tmp_path: Path) -> None:
    """Not where another rule finds something on the same line either."""
    sql = f"select * from {{{{ ref('customers') }}}} where name = '{DATABRICKS}' and id = '{GITHUB}' limit 1 -- mvbuild: allow(cross-join) {AWS}\n"
    graph = shop(
        tmp_path,
        {
            **QUIET,
            "models/m.sql": sql,
            "models/m.yml": "models: [{name: m, config: {meta: {password: hunter2hunter2, db: 'jdbc://a:sesame123@h'}}}]\n",
            "macros/k.sql": f"{{% macro k() %}}{KEY}{{% endmacro %}}\n",
        },
    )
    findings = report(graph).findings
    assert {f.code for f in findings} >= {"secret-in-file", "select-star", "limit-without-order", "unused-allowance", "unlike-types"}
    shown = "\n".join(
        (to_text(f.diagnostic for f in findings), to_json(findings), to_github(findings), to_sarif(findings, version="1"), repr(findings))
    )
    for secret in (DATABRICKS, GITHUB, AWS, "hunter2", "sesame", "abc\n"):
        assert secret not in shown
    assert "*****" in shown
    assert sum(f.code == "secret-in-file" for f in findings) == 6
