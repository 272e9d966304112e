"""Random visits that come, move and go, around the night to summer time -> their sessions, refreshed by the users that changed."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from spark.projects import Project, messages, of
from spark.refresh_histories import as_if_large
from spark.shop import MakeProject

pytestmark = pytest.mark.proof

BY_USER = "session_window(at, '30 minutes')"
QUERIES = {
    "visits": f"SELECT user, {BY_USER}.start AS begun, session_window.end AS ended, count(*) AS pages, sum(v) AS s FROM raw.clicks GROUP BY user, {BY_USER}",
    "long_visits": f"SELECT user, place, {BY_USER} AS w, max(v) AS m FROM raw.clicks WHERE v IS NOT NULL GROUP BY ALL HAVING count(*) > 1",
    "per_user": f"SELECT user, count(*) AS visits, avg(pages) AS mean FROM (SELECT user, count(*) AS pages FROM raw.clicks GROUP BY user, {BY_USER}) GROUP BY user",
    "with_country": (
        "SELECT c.country, s.begun, s.pages FROM (SELECT user, session_window(at, '2 hours').start AS begun, count(*) AS pages FROM raw.clicks "
        "GROUP BY user, session_window(at, '2 hours')) AS s JOIN raw.users AS c ON c.user = s.user"
    ),
    "numbered": f"SELECT user, begun, row_number() OVER (PARTITION BY user ORDER BY begun) AS number FROM (SELECT user, {BY_USER}.start AS begun FROM raw.clicks GROUP BY user, {BY_USER})",
}
ZONE = "spark.sql.session.timeZone"
FIRST = "TIMESTAMP '2026-03-28 23:00:00'"


@pytest.fixture(scope="module", autouse=True)
def large() -> Iterator[None]:
    with as_if_large():
        yield


def row(random_: random.Random, id_: int) -> str:
    at = "NULL" if random_.random() < 0.1 else f"{FIRST} + INTERVAL '{random_.randrange(480)}' MINUTE"
    user = "NULL" if random_.random() < 0.05 else random_.randrange(6)
    value = "NULL" if random_.random() < 0.2 else random_.randrange(50)
    return f"({id_}, {user}, '{random_.choice('ab')}', {at}, {value})"


def change(random_: random.Random, made: int) -> str:
    user, begun = random_.randrange(6), random_.randrange(480)
    kinds = (
        f"INSERT INTO lake.raw.clicks VALUES {', '.join(row(random_, 1000 * made + at) for at in range(random_.randrange(1, 4)))}",
        f"DELETE FROM lake.raw.clicks WHERE user = {user} AND at > {FIRST} + INTERVAL '{begun}' MINUTE",
        f"UPDATE lake.raw.clicks SET at = at + INTERVAL '{random_.choice((-31, -1, 29, 30, 60))}' MINUTE WHERE id % 7 = {random_.randrange(7)}",
        f"UPDATE lake.raw.clicks SET user = {user} WHERE id % 11 = {random_.randrange(11)}",
        f"UPDATE lake.raw.users SET country = 'c{made}' WHERE user = {user}",
    )
    return random_.choice(kinds)


def check(house: Project) -> None:
    for name, sql in QUERIES.items():
        assert house.bag(f"SELECT * FROM lake.mart.{name}__storage") == house.bag(sql.replace("raw.", "lake.raw.")), name
    house.assert_tidy()


@pytest.mark.parametrize("views", ["never", "always"])
def test_random_visits(project: MakeProject, views: str) -> None:
    random_ = random.Random(views)
    settings = f"{{+refresh_policy: incremental, +namespace: mart, +auxiliary_views: {views}}}"
    zone = "target: dev\ntargets: {dev: {spark: {config: {spark.sql.session.timeZone: Europe/Berlin}}}}\n"
    house = project(
        {"mvbuild.yml": f"name: sessions\nmodels: {settings}\n{zone}", **{f"models/{n}.sql": f"{q}\n" for n, q in QUERIES.items()}}
    )
    house.spark.conf.set(ZONE, "Europe/Berlin")
    house.sql("CREATE NAMESPACE IF NOT EXISTS lake.raw")
    merge = "TBLPROPERTIES ('write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read')"
    house.sql(f"CREATE TABLE lake.raw.clicks (id INT, user INT, place STRING, at TIMESTAMP, v INT) USING iceberg {merge}")
    house.sql(f"CREATE TABLE lake.raw.users (user INT, country STRING) USING iceberg {merge}")
    house.sql(f"INSERT INTO lake.raw.clicks VALUES {', '.join(row(random_, id_) for id_ in range(60))}")
    house.sql("INSERT INTO lake.raw.users VALUES (0, 'no'), (1, 'no'), (2, 'de'), (3, 'it'), (4, 'it'), (5, NULL)")
    followed = 0
    for made in range(9):
        if made:
            house.sql(change(random_, made))
        result = house.run()
        assert result.ok, messages(result)
        check(house)
        strategies = {of(result, name).details.get("strategy") for name in QUERIES}
        followed += made > 0 and "full" not in strategies
    assert followed == 8
