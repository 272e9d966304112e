"""The sample project on each catalog, with a local Spark and over Spark Connect: built, left alone, changed and built again.

Its rows are the same everywhere, and they are read back without mvbuild: by a Spark that is configured as Iceberg's documentation says, and
by PyIceberg.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog

from mvbuild import api
from mvbuild.refresh.result import RunResult
from servers import hive, moto, postgres, rest
from servers.moto import SECRET
from servers.postgres import PASSWORD
from spark.canaries import below, leaks
from spark.conftest import Lake
from spark.projects import NoSpark, arrow_bag, bag, messages, named

pytestmark = pytest.mark.proof

CATALOG = "harbor"
"""The one Spark of the tests knows a `lake` already."""
SAMPLE = Path(__file__).parents[2] / "sample_project"
MVS = ("customer_lifetime_value", "daily_revenue", "monthly_summary", "order_facts", "product_ranking", "product_sales", "return_rates")
VIEWS = ("daily_revenue", "product_ranking")
"""Those that are read back as views: one that was changed, and one that reads another MV by its plain name."""
S3 = "org.apache.iceberg.aws.s3.S3FileIO"
RETURN = {"return_id": 8001, "order_id": 50003, "product_id": 136, "returned_on": "2025-01-20", "quantity": 1, "reason": "damaged"}
NO_SERVER = (hive.NoServer, moto.NoServer, postgres.NoServer, rest.NoServer)


@dataclass(kw_only=True)
class Place:
    """A catalog: its configuration in the project, in PyIceberg and in a Spark without mvbuild."""

    properties: Mapping[str, str]
    spark: Mapping[str, str]
    """As the documentation of Iceberg has it, after `spark.sql.catalog.<name>.`"""
    clear: Callable[[], object] = lambda: None
    secrets: Mapping[str, str] = field(default_factory=dict)
    """Property -> the variable that the project reads it from."""
    embedded: bool = False
    views: bool = True
    """Whether Spark finds views."""


def embedded(stack: ExitStack, root: Path) -> Place:
    home = root / "project" / ".mvbuild"
    properties = {"type": "sql", "uri": f"sqlite:///{home}/catalog.db", "warehouse": f"file://{home}/warehouse"}
    spark = {"type": "jdbc", "uri": f"jdbc:sqlite:{home}/catalog.db", "jdbc.schema-version": "V1", "warehouse": f"file://{home}/warehouse"}
    return Place(properties=properties, spark=spark, embedded=True)


def on_postgres(stack: ExitStack, root: Path) -> Place:
    server = stack.enter_context(postgres.running())
    warehouse = f"file://{root}/warehouse"
    keys = {"jdbc.user": "lake", "jdbc.password": PASSWORD, "jdbc.schema-version": "V1"}
    return Place(
        properties={"type": "sql", "uri": server.uri(), "warehouse": warehouse},
        spark={"type": "jdbc", "uri": f"jdbc:postgresql://127.0.0.1:{server.port}/postgres", "warehouse": warehouse, **keys},
        clear=lambda: server.execute("DROP TABLE IF EXISTS iceberg_tables, iceberg_namespace_properties"),
        secrets={"uri": "LAKE_URI"},
    )


def on_rest(stack: ExitStack, root: Path) -> Place:
    server = stack.enter_context(rest.running(root))
    return Place(properties=server.properties, spark={"type": "rest", "uri": server.uri}, clear=server.clear)


def on_hive(stack: ExitStack, root: Path) -> Place:
    server = stack.enter_context(hive.running(root))
    spark = {"type": "hive", "uri": server.uri, "warehouse": f"file://{server.warehouse}"}
    return Place(properties=server.properties, spark=spark, clear=server.clear)


def on_rest_and_s3(stack: ExitStack, root: Path) -> Place:
    """The keys of the files are the server's, which hands them out."""
    store = stack.enter_context(moto.running(root))
    server = stack.enter_context(rest.running(root, store))
    properties = {**server.properties, "s3.endpoint": store.uri, "s3.region": "us-east-1"}
    spark = {"s3.endpoint": store.uri, "s3.path-style-access": "true", "client.region": "us-east-1"}
    return Place(properties=properties, spark={"type": "rest", "uri": server.uri, **spark}, clear=server.clear)


def on_glue(stack: ExitStack, root: Path) -> Place:
    """The keys are in the environment; Java was started before."""
    store = stack.enter_context(moto.running(root))
    patch = stack.enter_context(pytest.MonkeyPatch.context())
    for key, value in moto.KEYS.items():
        patch.setenv(key, value)
    places = {"glue.endpoint": store.uri, "s3.endpoint": store.uri, "warehouse": f"s3://{moto.BUCKET}/glue"}
    spark = {"type": "glue", "io-impl": S3, "s3.path-style-access": "true", "client.region": "us-east-1", **places}
    return Place(properties={"type": "glue", "glue.region": "us-east-1", **places}, spark=spark, clear=store.clear, views=False)


PLACES = (embedded, on_postgres, on_rest, on_hive, on_rest_and_s3, on_glue)


@dataclass(frozen=True, kw_only=True)
class Engine:
    """A session of the one Spark, or a Spark Connect server that the project names."""

    spark: Any = None
    remote: str | None = None


@dataclass(frozen=True, kw_only=True)
class Sample:
    """The sample project in a place."""

    root: Path
    place: Place
    catalog: Any

    def run(self, engine: Engine) -> RunResult:
        project = (SAMPLE / "mvbuild.yml").read_text(encoding="utf-8")
        (self.root / "mvbuild.yml").write_text(project + target(self.place, engine.remote), encoding="utf-8")
        result = api.run(self.root, spark=engine.spark)
        assert result.ok, messages(result)
        return result

    def only_reused(self) -> bool:
        return set(named(self.run(Engine(spark=NoSpark()))).values()) == {"reused"}

    def told(self) -> str:
        """The rows of each MV, by PyIceberg."""
        found = {name: sorted(arrow_bag(self.catalog.load_table(f"mart.{name}__storage").scan().to_arrow()).elements()) for name in MVS}
        return "".join(f"{name} {len(rows)} {sha256(''.join(rows).encode()).hexdigest()}\n" for name, rows in found.items())

    def change(self) -> None:
        """A return, written with PyIceberg alone, and a new column."""
        import pyarrow as pa

        returns = self.catalog.load_table("raw.returns")
        returns.append(pa.Table.from_pylist([RETURN], schema=returns.schema().as_arrow()))
        file = self.root / "models" / "marts" / "daily_revenue.sql"
        last = "cast(sum(sales.revenue_eur) as decimal(18, 2)) as revenue_eur"
        text = file.read_text(encoding="utf-8")
        assert last in text
        file.write_text(text.replace(last, f"{last},\n    max(sales.revenue_eur) as largest_eur"), encoding="utf-8")


# Who builds, and who builds again after the change. MVBUILD_EVERYWHERE=1 has each engine do all of it on each catalog. Without it, two
# catalogs are left out: other tests build the sample project in the embedded one, and REST with S3 is the same REST server.
ENGINES = ("local", "connect")
TURNS = tuple((of, *(ENGINES if number % 2 else reversed(ENGINES))) for number, of in enumerate(PLACES) if of not in (embedded, on_rest))
EVERYWHERE = tuple((of, engine, engine) for of in PLACES for engine in ENGINES)
CASES = EVERYWHERE if os.environ.get("MVBUILD_EVERYWHERE") else TURNS


@pytest.fixture(scope="module")
def place(request: pytest.FixtureRequest, lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Place, Path]]:
    """Its server, if it has one, and a directory."""
    root = tmp_path_factory.mktemp(request.param.__name__)
    with ExitStack() as stack:
        try:
            made = request.param(stack, root)
        except NO_SERVER as error:
            pytest.skip(str(error))
        yield made, root


def target(place: Place, remote: str | None) -> str:
    # Without other properties it is the catalog in the project.
    given = {} if place.embedded else place.properties
    values = {key: f"{{{{ env_var('{place.secrets[key]}') }}}}" if key in place.secrets else value for key, value in given.items()}
    catalog = f"    catalog:\n      name: {CATALOG}\n" + "".join(f'      {key}: "{value}"\n' for key, value in values.items())
    # A setting that only the start of the server can set is not in the way.
    spark = f"    spark: {{remote: '{remote}', config: {{spark.driver.memory: 9g, spark.sql.ansi.enabled: true}}}}\n" if remote else ""
    return f"\ntarget: there\ntargets:\n  there:\n    threads: 4\n{catalog}{spark}"


@pytest.fixture
def sample(lake: Lake, place: tuple[Place, Path]) -> Iterator[Sample]:
    there, root = place
    there.clear()
    shutil.rmtree(root / "project", ignore_errors=True)
    shutil.copytree(SAMPLE, root / "project", ignore=shutil.ignore_patterns("target", ".mvbuild"))
    (root / "project" / ".mvbuild" / "warehouse").mkdir(parents=True)
    catalog: Any = load_catalog(CATALOG, **there.properties)
    with pytest.MonkeyPatch.context() as patch:
        for key, variable in there.secrets.items():
            patch.setenv(variable, there.properties[key])
        yield Sample(root=root / "project", place=there, catalog=catalog)
    catalog.close()


@pytest.fixture
def plain(lake: Lake, place: tuple[Place, Path]) -> Any:
    """A Spark session that does not know mvbuild."""
    session = lake.session.newSession()
    session.conf.set(f"spark.sql.catalog.{CATALOG}", "org.apache.iceberg.spark.SparkCatalog")
    for key, value in place[0].spark.items():
        session.conf.set(f"spark.sql.catalog.{CATALOG}.{key}", value)
    return session


@pytest.fixture(autouse=True)
def java_keys(lake: Lake, place: tuple[Place, Path]) -> Iterator[None]:
    """Of the environment that a Java has which is started now; this one was before."""
    system = lake.session._jvm.java.lang.System
    keys = {"aws.accessKeyId": "lake", "aws.secretAccessKey": SECRET}
    for key, value in keys.items():
        _ = system.clearProperty(key) if place[0].views else system.setProperty(key, value)
    yield
    for key in keys:
        system.clearProperty(key)


@pytest.mark.parametrize(("place", "builds", "builds_again"), CASES, indirect=["place"], ids=lambda of: getattr(of, "__name__", of))
def test_built_left_alone_changed_and_built_again(
    sample: Sample,
    builds: str,
    builds_again: str,
    lake: Lake,
    plain: Any,
    golden: Callable[[str, str], None],
) -> None:
    def engine(name: str) -> Engine:
        if name == "connect":
            return Engine(remote=lake.remote)
        return Engine(spark=lake.session.newSession())

    assert set(named(sample.run(engine(builds))).values()) <= {"success", "pass"}
    golden("sample-project-rows", sample.told())
    assert sample.only_reused()
    sample.change()
    statuses = named(sample.run(engine(builds_again)))
    refreshed = {name for name, status in statuses.items() if status == "success" and name in MVS}
    assert refreshed == {"return_rates", "customer_lifetime_value", "daily_revenue", "monthly_summary"}
    assert sample.only_reused()
    golden("sample-project-rows-after-a-change", sample.told())
    assert_read_back(sample, plain)
    # The files of a dropped entry are gone too, whatever credentials are used.
    dropped = api.drop(sample.root, "monthly_summary")
    assert dropped
    assert dropped.files
    assert ("mart", "monthly_summary__storage") not in sample.catalog.list_tables("mart")
    written = {**below(sample.root / "target"), **below(lake.log_file)}
    assert written
    assert leaks(written, [PASSWORD, SECRET]) == []


def assert_read_back(sample: Sample, plain: Any) -> None:
    """By Spark and PyIceberg, without mvbuild. A view is its query: Spark computes it."""
    stored = {name: arrow_bag(sample.catalog.load_table(f"mart.{name}__storage").scan().to_arrow()) for name in MVS}
    for name, expected in stored.items():
        assert bag(plain.table(f"{CATALOG}.mart.{name}__storage").collect()) == expected, name
    for name in VIEWS if sample.place.views else ():
        assert bag(plain.table(f"{CATALOG}.mart.{name}").collect()) == stored[name], name
    if sample.place.properties["type"] == "rest":
        view = sample.catalog.load_view(("mart", VIEWS[0])).sql_for("spark")
        assert bag(plain.sql(view.sql).collect()) == stored[VIEWS[0]]
    else:
        # PyIceberg knows views of REST catalogs only; it does not take one for a table either.
        assert {name for _, name in sample.catalog.list_tables("mart")} == {f"{name}__storage" for name in MVS}
