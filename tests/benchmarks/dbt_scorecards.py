"""Imports public dbt projects and prints what becomes of them, as a table for docs/import-dbt.md.

    python tests/benchmarks/dbt_scorecards.py                     # all of them; clones them from GitHub
    python tests/benchmarks/dbt_scorecards.py jaffle-shop --clones DIR
    python tests/benchmarks/dbt_scorecards.py --git URL --commit HEAD --option --vars --option '{a: 1}'

DIR may have clones, also bare ones, as `owner/name` or `owner+name/repo`. Each project is read at its commit, with a profile for Spark, and nothing of it
is changed. Time and memory are those of one `mvbuild import dbt --check` each.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

_SUFFIXES = (".sql", ".yml", ".yaml", ".csv", ".md", ".py")


@dataclass(frozen=True, kw_only=True)
class Public:
    """A project on GitHub. `before` is how many of its models were refused before mvbuild had dbt's macros and packages; `folder` is where
    its dbt_project.yml is, and `env` what its own scheduler sets. `users` is the folder with the models that a user of a package writes: here each of them is a table."""

    name: str
    commit: str
    options: tuple[str, ...] = ()
    before: int | None = None
    folder: str = ""
    env: tuple[tuple[str, str], ...] = ()
    users: str = ""


PROJECTS = (
    Public(name="dbt-labs/jaffle-shop-classic", commit="fd7bfaca"),
    Public(name="dbt-labs/jaffle-shop", commit="7be2c58", before=11),
    Public(name="DataRecce/dbt-tpch", commit="9dfdde8", before=56),
    Public(
        name="david-but-its-daweed/dbt-spark-models",
        commit="edcfcb96",
        options=("--vars", "{start_date_ymd: '2025-09-08', end_date_ymd: '2025-09-09', table_name: t}"),
        before=253,
    ),
    Public(
        name="tuva-health/tuva",
        commit="6be34c7a",
        options=(
            "--vars",
            "{claims_enabled: true, clinical_enabled: true, provider_attribution_enabled: true, semantic_layer_enabled: true, "
            "cms_hcc_payment_year: 2024, tuva_last_run: '2024-01-01 00:00:00', _extension_columns_override: []}",
        ),
        users="integration_tests/models",
        before=605,
    ),
    Public(name="duneanalytics/spellbook", commit="b7b19d1c41", before=632),
    Public(name="duneanalytics/spellbook", commit="b7b19d1c41", before=632, options=("--full-query", "*")),
    Public(name="dbt-labs/mrr-playbook", commit="f7921cf7"),
    Public(name="dbt-labs/attribution-playbook", commit="54e5543f"),
    Public(name="snowplow/dbt-snowplow-web", commit="0e4f868f"),
    Public(name="fivetran/dbt_shopify", commit="d768d54a"),
    Public(name="meltano/squared", commit="266bc9a4", folder="data/transform", env=(("MELTANO_ENVIRONMENT", "prod"),)),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="a part of the name of each project; all of them without one")
    parser.add_argument("--clones", type=Path, help="a folder with clones, instead of cloning from GitHub")
    parser.add_argument("--git", help="the address of one more project")
    parser.add_argument("--commit", default="HEAD", help="its commit")
    parser.add_argument("--option", action="append", default=[], help="an option of its import")
    given = parser.parse_args()
    chosen = [p for p in PROJECTS if not given.names or any(name in p.name for name in given.names)]
    if given.git:
        chosen = [Public(name=given.git, commit=given.commit, options=tuple(given.option))]
    print(
        "| project | models | unchanged | changed | disabled | refused | refused before | seconds | MB |\n|---|---|---|---|---|---|---|---|---|"
    )
    reasons = []
    for project in chosen:
        with tempfile.TemporaryDirectory(prefix="mvbuild-scorecard-") as folder:
            card, seconds, megabytes = imported(project, source_of(project, given.clones, Path(folder)), Path(folder) / "project")
        counts = card["kinds"]["model"]
        name = f"{project.name} `--full-query`" if "--full-query" in project.options else project.name
        row = [name, sum(counts.values()), *(counts[kind] for kind in ("unchanged", "changed", "disabled", "refused"))]
        print(
            "| " + " | ".join(map(str, [*row, "" if project.before is None else project.before, round(seconds), megabytes])) + " |",
            flush=True,
        )
        reasons.append(f"\n{project.name}: " + ", ".join(f"`{code}` {count}" for code, count in why(card).most_common()))
    print("\n".join(reasons))


def source_of(project: Public, clones: Path | None, work: Path) -> Path:
    """The git directory of a project."""
    if clones is not None:
        places = (clones / project.name, clones / project.name.replace("/", "+") / "repo", clones / project.name.partition("/")[2])
        if found := next((place for place in places if place.exists()), None):
            return found
    address = project.name if "://" in project.name or Path(project.name).exists() else f"https://github.com/{project.name}.git"
    subprocess.run(["git", "clone", "--quiet", "--bare", "--", address, str(work / "clone")], check=True)
    return work / "clone"


def imported(project: Public, repository: Path, work: Path) -> tuple[dict[str, Any], float, int]:
    """The scorecard of a project at its commit, and the seconds and the most MB of memory that the import took."""
    root = unpacked(project, repository, work)
    command = [sys.executable, "-m", "mvbuild.cli.main", "import", "dbt", str(root), "--check", "--output", "json", *project.options]
    began = time.monotonic()
    with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as wrong:
        # Waited for here, because the usage of all children together hides that of one.
        child = subprocess.Popen(command, stdout=printed, stderr=wrong, env={**os.environ, **dict(project.env), "NO_COLOR": "1"})
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - began
        printed.seek(0)
        wrong.seek(0)
        text = printed.read()
        if not text:
            raise SystemExit(f"{project.name}: {wrong.read().decode()}")
    found: dict[str, Any] = json.loads(text)
    return found, seconds, used.ru_maxrss // 1024


def unpacked(project: Public, repository: Path, work: Path) -> Path:
    """The folder of a project at its commit, with a profile for Spark."""
    for path, content in files(repository, project.commit):
        file = work / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    root = work / project.folder
    for file in (work / project.users).glob("*.sql") if project.users else ():
        (root / "models" / file.name).write_text(f"{{{{ config(materialized='table') }}}}\nselect * from of_a_user.{file.stem}\n")
    profile = yaml.safe_load((root / "dbt_project.yml").read_text(encoding="utf-8")).get("profile", "default")
    target = {"type": "spark", "method": "session", "schema": "default", "host": "none"}
    (root / "profiles.yml").write_text(yaml.safe_dump({profile: {"target": "prod", "outputs": {"prod": target}}}), encoding="utf-8")
    return root


def files(repository: Path, commit: str) -> Iterator[tuple[str, bytes]]:
    """Path and content of the files that an import reads. Those that a clone does not have are left out."""
    listed = subprocess.run(["git", "-C", str(repository), "ls-tree", "-r", "-z", commit], capture_output=True, check=True).stdout.decode()
    entries = [(line.split()[2], line.partition("\t")[2]) for line in listed.split("\0") if line.split()[1:2] == ["blob"]]
    wanted = [(id_, path) for id_, path in entries if path.lower().endswith(_SUFFIXES)]
    asked = "".join(f"{id_}\n" for id_, _ in wanted).encode()
    answer = subprocess.run(["git", "-C", str(repository), "cat-file", "--batch"], input=asked, capture_output=True, check=True).stdout
    at = 0
    for _, path in wanted:
        end = answer.index(b"\n", at)
        header = answer[at:end].split()
        at = end + 1
        if header[1] != b"missing":
            size = int(header[2])
            yield path, answer[at : at + size]
            at += size + 1


def why(card: dict[str, Any]) -> Counter[str]:
    """Code -> in how many refused models it is."""
    refused = (item for item in card["items"] if item["kind"] == "model" and item["verdict"] == "refused")
    return Counter(code for item in refused for code in {reason["code"] for reason in item["reasons"]})


if __name__ == "__main__":
    main()
