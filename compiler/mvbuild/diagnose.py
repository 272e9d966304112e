"""project + environment -> Checks: what mvbuild needs of this machine and of the catalog, each with how to fix it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from mvbuild.adapters import open_catalog, start_engine
from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import CODES
from mvbuild.graph.outside import Outside
from mvbuild.ports.catalog import CatalogError
from mvbuild.ports.engine import EngineError, QueryError
from mvbuild.project.loaded import LoadedProject


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check. `ok` is None if an earlier failure made the check pointless."""

    name: str
    ok: bool | None
    found: str
    fix: str = ""


def checks(project: LoadedProject, env: Mapping[str, str], progress: Callable[[str], None]) -> Iterator[Check]:
    """Check Java, jars, catalog, Spark, and Spark's access to the same catalog, in the order in which they depend on each other."""
    catalog = _catalog(project)
    yield catalog
    remote = project.target.spark.remote or ""
    if remote.startswith("sc://"):
        if catalog.ok:
            yield _spark(project, env, progress)
        return
    java = _java(env)
    yield java
    jars = _jars(project, env, progress) if java.ok else Check(name="jars", ok=None, found="not checked: there is no Java")
    yield jars
    if not (java.ok and jars.ok and catalog.ok):
        yield Check(name="Spark", ok=None, found="not started")
        return
    yield _spark(project, env, progress)


def _catalog(project: LoadedProject) -> Check:
    target = project.target
    where = "embedded" if target.embedded else target.catalog.get("type", "configured")
    try:
        catalog = open_catalog(target.catalog_name, target.catalog, embedded=target.embedded)
        names = catalog.list_names(target.namespace)
    except CatalogError as exc:
        code = CODES["catalog-unreachable" if exc.unreachable else "catalog-error"]
        return Check(name="catalog", ok=False, found=str(exc), fix=code.help)
    namespace = ".".join(target.namespace)
    unseen = "" if catalog.spark_reads_views else "; Spark cannot find its views by name, only the storage tables"
    found = f"'{target.catalog_name}' ({where}), {len(names)} tables and views in '{namespace}'{unseen}"
    return Check(name="catalog", ok=True, found=found)


def _java(env: Mapping[str, str]) -> Check:
    from mvbuild.adapters.spark.java import find_java

    try:
        java = find_java(env)
    except EngineError as exc:
        return Check(name="Java", ok=False, found=str(exc), fix=exc.help or CODES[exc.code].help)
    return Check(name="Java", ok=True, found=f"{java.major} at {java.path}")


def _jars(project: LoadedProject, env: Mapping[str, str], progress: Callable[[str], None]) -> Check:
    from mvbuild.adapters.spark import jars
    from mvbuild.adapters.spark.java import find_java
    from mvbuild.adapters.spark.launch import needed_jars

    target = project.target
    config = target.spark.config
    try:
        wanted = needed_jars(target, Outside.of(project).locations)
        paths = jars.resolve(wanted, cache=jars.cache_dir(env), java=find_java(env).path, config=config, env=env, progress=progress)
    except EngineError as exc:
        return Check(name="jars", ok=False, found=str(exc), fix=exc.help or CODES[exc.code].help)
    return Check(name="jars", ok=True, found=", ".join(p.name for p in paths) or "given by the target's configuration")


def _spark(project: LoadedProject, env: Mapping[str, str], progress: Callable[[str], None]) -> Check:
    target, log = project.target, project.target_path / "logs" / "spark.log"
    try:
        sources = Outside.of(project).locations
        engine = start_engine(target, spark=None, log_file=log, env=env, progress=progress, sources=sources)
        try:
            version = engine.rows("SELECT version() AS version", 1).rows[0][0]
            engine.call(f"SHOW NAMESPACES IN {target.catalog_name}")
        finally:
            engine.close()
    except (EngineError, QueryError) as exc:
        fix = exc.help if isinstance(exc, EngineError) else ""
        return Check(name="Spark", ok=False, found=str(exc), fix=fix or f"{CODES['spark-start'].help} Log: {log}")
    return Check(name="Spark", ok=True, found=f"{str(version).split(' ')[0]} reaches catalog '{target.catalog_name}'")
