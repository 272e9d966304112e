"""Runs clients of dbt's artifacts and orchestrators, each in a venv of its own, on the sample project, and prints a table of the results.

    .venv/bin/python tests/clients/run.py                    # all of them
    .venv/bin/python tests/clients/run.py dagster-dbt cosmos # some of them

`--folder DIR` keeps the venvs and what the clients wrote, for the next time. Needs Java, and Chromium for the page of dbt.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
MVBUILD = Path(sys.prefix) / "bin" / "mvbuild"
PROFILES = """harbor_market:
  target: dev
  outputs:
    dev: {type: spark, method: thrift, host: localhost, port: 10000, schema: mart}
"""
TARGETS = """
profile: harbor_market
target: dev
targets:
  dev:
    catalog: {{name: lake, type: sql, uri: 'sqlite:///{home}/catalog.db', warehouse: 'file://{home}/warehouse'}}
"""


@dataclass(frozen=True, kw_only=True)
class Client:
    """`packages` are installed into its venv; with `mvbuild`, the venv sees those of the one that runs this, too."""

    packages: tuple[str, ...]
    command: Callable[[Place], Sequence[Sequence[str]]]
    """The commands, one after another; `{bin}` is the folder of its venv's programs. The last line that the last one prints is the result."""
    builds: bool = True
    """Whether it needs a project that was built."""
    mvbuild: bool = False
    env: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a client works."""

    project: Path
    out: Path
    bin: Path

    @property
    def target(self) -> Path:
        return self.project / "target"


def program(name: str, *arguments: object) -> Callable[[Place], Sequence[Sequence[str]]]:
    def command(place: Place) -> Sequence[Sequence[str]]:
        return [[str(place.bin / "python"), str(HERE / "programs" / f"{name}.py"), str(place.project), str(MVBUILD), str(place.out)]]

    return command


CLIENTS = {
    "dbt-core": Client(packages=("dbt-core<1.12",), command=program("dbt_core")),
    "dagster-dbt": Client(packages=("dagster", "dagster-dbt", "python-dateutil"), command=program("dagster_dbt_project"), builds=False),
    "dagster": Client(packages=("dagster",), command=program("dagster_assets"), builds=False, mvbuild=True),
    "cosmos": Client(packages=("apache-airflow>=3", "astronomer-cosmos"), command=program("cosmos_dag"), builds=False),
    "airflow": Client(packages=("apache-airflow>=3",), command=program("airflow_dag"), builds=False, mvbuild=True),
    "openlineage-dbt": Client(packages=("openlineage-dbt", "dbt-core<1.12"), command=program("openlineage_dbt")),
    "datahub": Client(packages=("acryl-datahub[dbt]",), command=program("datahub_dbt")),
    "dbt-metabase": Client(packages=("dbt-metabase",), command=program("metabase_models")),
    "dbt-coverage": Client(packages=("dbt-coverage",), command=program("coverage")),
    "dbt-score": Client(packages=("dbt-score", "dbt-core<1.12"), command=program("score")),
    "dbt-bouncer": Client(packages=("dbt-bouncer",), command=program("bouncer")),
    "dbt docs": Client(packages=("dbt-core<1.12",), command=program("docs_page"), mvbuild=True),
}


def project(folder: Path, *, built: bool) -> Path:
    """A copy of the sample project, with the files that dbt's clients look for, and a catalog beside it."""
    root = folder / "project"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(REPOSITORY / "sample_project", root, ignore=shutil.ignore_patterns("target", ".mvbuild"))
    home = folder / "lake"
    (home / "warehouse").mkdir(parents=True)
    file = root / "dbt_project.yml"
    (root / "mvbuild.yml").rename(file)
    file.write_text(file.read_text(encoding="utf-8") + TARGETS.format(home=home), encoding="utf-8")
    (root / "profiles.yml").write_text(PROFILES, encoding="utf-8")
    if built:
        for command in (["build"], ["docs", "generate"]):
            subprocess.run([MVBUILD, "--quiet", *command, "--project-dir", root], check=True)
    return root


def venv(folder: Path, client: Client) -> Path:
    """A venv with the packages of a client; one that is there already is used again."""
    made = folder / "bin"
    if not (folder / "ready").exists():
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        # uv does the same in a tenth of the time.
        uv = shutil.which("uv")
        pip = [uv, "pip", "install", "--python", made / "python"] if uv else [made / "python", "-m", "pip", "install"]
        subprocess.run([*pip, "--quiet", *client.packages], check=True)
        if client.mvbuild:
            site = subprocess.run(
                [made / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
                check=True,
                capture_output=True,
                text=True,
            ).stdout.strip()
            seen = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})"
            paths = [seen, str(REPOSITORY / "compiler"), str(REPOSITORY / "tests")]
            (Path(site) / "mvbuild-of-the-caller.pth").write_text("\n".join(paths) + "\n", encoding="utf-8")
        (folder / "ready").touch()
    return made


def versions(programs: Path, client: Client) -> str:
    names = [re.split(r"[\[><=]", package)[0] for package in client.packages]
    code = "import importlib.metadata as m, sys; print(', '.join(f'{n} {m.version(n)}' for n in sys.argv[1:]))"
    return subprocess.run([programs / "python", "-c", code, *names], check=True, capture_output=True, text=True).stdout.strip()


def run(name: str, client: Client, folder: Path, shared: Path | None) -> tuple[bool, str, str]:
    """Whether it succeeded, the versions, and what its last line says."""
    slug = name.replace(" ", "-")
    programs = venv(folder / "venvs" / slug, client)
    root = shared if client.builds and shared is not None else project(folder / "projects" / slug, built=False)
    out = folder / "out" / slug
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("DBT_", "MVBUILD_", "AIRFLOW", "DAGSTER", "OPENLINEAGE"))}
    environment |= {"PATH": f"{programs}{os.pathsep}{environment['PATH']}", **dict(client.env)}
    if chromium := os.environ.get("MVBUILD_CHROMIUM"):
        environment["MVBUILD_CHROMIUM"] = chromium
    said = ""
    for command in client.command(Place(project=root, out=out, bin=programs)):
        with (out / "log.txt").open("a", encoding="utf-8") as log:
            done = subprocess.run(command, cwd=out, env=environment, stdout=subprocess.PIPE, stderr=log, text=True, check=False)
            log.write(done.stdout)
        lines = done.stdout.strip().splitlines()
        said = lines[-1] if lines else ""
        if done.returncode:
            return False, versions(programs, client), f"exit code {done.returncode}: {said}; see {out / 'log.txt'}"
    return True, versions(programs, client), said


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="CLIENT", help=", ".join(CLIENTS))
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--install", action="store_true", help="only make the venvs")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - CLIENTS.keys():
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    folder = (arguments.folder or Path(tempfile.mkdtemp(prefix="mvbuild-clients-"))).resolve()
    chosen = {name: client for name, client in CLIENTS.items() if not arguments.names or name in arguments.names}
    if arguments.install:
        for name, client in chosen.items():
            venv(folder / "venvs" / name.replace(" ", "-"), client)
        return 0
    shared = project(folder / "projects" / "built", built=True) if any(c.builds for c in chosen.values()) else None
    failed = 0
    for name, client in chosen.items():
        began = time.monotonic()
        ok, found, said = run(name, client, folder, shared)
        failed += not ok
        print(f"{'ok' if ok else 'FAILED'}  {name} ({found}): {said}  [{time.monotonic() - began:.0f}s]", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
