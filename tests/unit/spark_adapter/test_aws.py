"""Amazon's settings in the Spark configuration."""

from __future__ import annotations

import pytest

from mvbuild.adapters.spark.catalog_conf import catalog_conf
from mvbuild.ports.engine import EngineError

_GLUE = {"type": "glue", "warehouse": "s3://lake"}
_S3 = {"type": "sql", "uri": "sqlite:////c.db", "warehouse": "s3://lake"}


def _options(**properties: str) -> dict[str, str]:
    conf = catalog_conf("lake", properties)
    return {key.removeprefix("spark.sql.catalog.lake."): value for key, value in conf.items()}


def test_keys_for_all_services_are_keys_of_s3() -> None:
    given = {"client.access-key-id": "all", "client.secret-access-key": "secret", "client.session-token": "token"}
    found = _options(**_S3, **given)
    assert (found["s3.access-key-id"], found["s3.secret-access-key"], found["s3.session-token"]) == ("all", "secret", "token")
    assert not any(key in found for key in given)
    assert _options(**_S3, **{"s3.access-key-id": "own", **given})["s3.access-key-id"] == "own"


@pytest.mark.parametrize("key", ["glue.access-key-id", "client.access-key-id", "glue.profile-name", "client.profile-name"])
def test_keys_that_spark_cannot_give_to_glue(key: str) -> None:
    with pytest.raises(EngineError, match=f"'{key}'") as caught:
        catalog_conf("lake", {**_GLUE, key: "secret-value"})
    assert "secret-value" not in str(caught.value)
    assert "AWS_PROFILE" in (caught.value.help or "")
    assert catalog_conf("lake", {**_GLUE, key: "x", "client.credentials-provider": "of.Mine"})


def test_a_region_for_a_server_that_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    assert "client.region" not in _options(**_S3)
    own = {**_S3, "s3.endpoint": "http://minio:9000"}
    assert _options(**own)["client.region"] == "us-east-1"
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    assert _options(**own)["client.region"] == "eu-west-1"
    assert _options(**own, **{"s3.region": "eu"})["client.region"] == "eu"


def test_what_only_python_knows_stays_there() -> None:
    found = _options(type="hive", uri="thrift://h:9083", **{"hive.hive2-compatible": "true", "ugi": "me:us", "lock-check-retries": "3"})
    assert found == {
        "type": "hive",
        "uri": "thrift://h:9083",
        "cache-enabled": "false",
        "spark.sql.catalog.lake": found["spark.sql.catalog.lake"],
    }
