from __future__ import annotations

import re

import pytest

from mvbuild.adapters.iceberg.failures import Translator
from mvbuild.adapters.spark.any_pyspark import is_remote
from mvbuild.adapters.spark.connect import address, connect, reason_of
from mvbuild.adapters.spark.launch import session_conf
from mvbuild.adapters.spark.session import _PRIVATE
from mvbuild.ports.engine import EngineError
from mvbuild.project.loaded import SparkSettings, Target

GRPC = """<_InactiveRpcError of RPC that terminated with:
\tstatus = StatusCode.UNAVAILABLE
\tdetails = "failed to connect to all addresses"
\tdebug_error_string = "UNKNOWN:Error received from peer"
>"""


@pytest.mark.parametrize(
    ("remote", "shown"),
    [
        ("sc://h:15002", "sc://h:15002"),
        ("sc://h:15002/;token=x;use_ssl=true", "sc://h:15002"),
        ("sc://h:15002/", "sc://h:15002"),
        ("sc://h;token=x", "sc://h"),
        ("sc://me:x@h:1/;user_id=me", "sc://h:1"),
    ],
)
def test_an_address_is_shown_without_parameters_and_user(remote: str, shown: str) -> None:
    assert address(remote) == shown


def test_the_reason_stands_in_the_middle_of_what_grpc_says() -> None:
    assert reason_of(ValueError(GRPC)) == "failed to connect to all addresses"
    caused = RuntimeError("[RETRIES_EXCEEDED] The maximum number of retries has been exceeded.")
    caused.__cause__ = ValueError(GRPC)
    assert reason_of(caused) == "failed to connect to all addresses"
    assert reason_of(ValueError("[A_B] No. SQLSTATE: 12345")) == "No."
    assert reason_of(ValueError()) == "ValueError"


def test_a_server_that_is_not_there() -> None:
    with pytest.raises(EngineError, match=r"Spark at sc://127\.0\.0\.1:9 cannot be reached: .*Connection refused") as caught:
        connect("sc://127.0.0.1:9/;user_id=canary", {}, lambda _: None)
    assert "canary" not in str(caught.value)
    assert not is_remote(caught.value)


@pytest.mark.parametrize(
    ("key", "private"),
    [
        ("spark.sql.catalog.lake.uri", True),
        ("spark.hadoop.fs.s3a.access.key", True),
        ("spark.authenticate.secret", True),
        ("spark.ssl.keyPassword", True),
        ("spark.kubernetes.authenticate.oauthToken", True),
        ("spark.driver.memory", False),
        ("spark.jars.repositories", False),
        ("fs.azure.account.key.x", True),
    ],
)
def test_what_may_not_stand_on_a_command_line(key: str, private: bool) -> None:
    assert bool(_PRIVATE.match(key)) is private


@pytest.mark.parametrize(
    "key",
    [
        "jdbc.password",
        "token",
        "credential",
        "s3.access-key-id",
        "s3.secret-access-key",
        "header.Authorization",
        "adls.account-key",
        "adls.sas-token",
    ],
)
def test_what_spark_masks_in_its_event_log(key: str) -> None:
    target = Target(
        name="t", catalog_name="lake", catalog={"type": "glue"}, namespace=("n",), spark=SparkSettings(), threads=1, embedded=False
    )
    pattern = session_conf(target)["spark.redaction.regex"]
    assert re.search(pattern, f"spark.sql.catalog.lake.{key}")
    assert not re.search(pattern, "spark.sql.catalog.lake.warehouse")


def test_what_is_masked_in_what_spark_says() -> None:
    masked = Translator(
        "lake", {"token": "a-long-token", "header.Authorization": "Bearer of-a-header", "s3.access-key-id": "lake"}
    ).masked_in_sql
    assert masked("at http://me:pw@h/x: of-a-header, a-long-token") == "at http://***@h/x: ***, ***"
    # Words of a query stay as they are: what is short, and columns that are called like settings.
    assert masked("column `token` of lake.main.t, in: token = 'x'") == "column `token` of lake.main.t, in: token = 'x'"
