"""packages.yml, `mvbuild deps` and the macros and tests of packages in templates."""

from __future__ import annotations

import io
import subprocess
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from mvbuild.api.compilation import compile
from mvbuild.api.dependencies import deps
from mvbuild.diagnostics import ProjectError
from mvbuild.graph.definition import definition
from unit.project.project_on_disk import write

PACKAGE = {
    "dbt_project.yml": "name: helpers\nvars: {unit: 100}\n",
    "macros/cents.sql": (
        "{% macro cents(x) %}{{ return(adapter.dispatch('cents', 'helpers')(x)) }}{% endmacro %}\n"
        "{% macro default__cents(x) %}{{ x }} * {{ var('unit') }}{% endmacro %}\n"
        "{% macro _hidden(x) %}hidden({{ x }}){% endmacro %}\n"
    ),
    "macros/both.sql": "{% macro both(x) %}{{ cents(x) }} + {{ helpers._hidden(x) }} + {{ dbt_utils.safe_add(x, 1) }}{% endmacro %}\n",
    "macros/elsewhere.sql": "{% materialization odd %}{% endmaterialization %}\n",
    "tests/generic/least.sql": (
        "{% test least(model, column_name, value=0) %}select * from {{ model }} where {{ column_name }} < {{ value }}{% endtest %}\n"
    ),
    "models/never.sql": "select 1 as never\n",
}
MODEL = {"models/m.sql": "select {{ helpers.both('a') }} as c from {{ ref('n') }}", "models/n.sql": "select 1 as a"}


def package(root: Path, files: Mapping[str, str] = PACKAGE) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def project(root: Path, packages: str, **files: str) -> Path:
    write(root / "shop", {"packages.yml": f"packages:\n{packages}\n", **MODEL, **files})
    return root / "shop"


def repository(root: Path, files: dict[str, str] = PACKAGE) -> Path:
    """A git repository with one commit and the tag v1."""
    package(root, files)
    for arguments in ("init --quiet", "add -A", "-c user.name=a -c user.email=a@example.com commit --quiet -m x", "tag -f v1"):
        subprocess.run(["git", *arguments.split()], cwd=root, check=True, capture_output=True)
    return root


def sql(root: Path, model: str = "m") -> str:
    graph = compile(root, env={})
    return definition(graph, graph.model(f"model.shop.{model}")).text


def codes(root: Path) -> list[str]:
    try:
        found = compile(root, env={}).problems
    except ProjectError as exc:
        found = exc.diagnostics
    return [f"{d.code}: {d.message}" for d in found]


EXPECTED = "select a * 100 + hidden(a) + coalesce(a, 0) + coalesce(1, 0) as c from lake.main.n"


def test_a_local_package_is_read_where_it_is(tmp_path: Path) -> None:
    package(tmp_path / "helpers")
    root = project(tmp_path, "  - local: ../helpers")
    assert codes(root) == ["packages-not-installed: The packages of this project are not installed"]
    assert [one.name for one in deps(root, env={})] == ["helpers"]
    assert sql(root) == EXPECTED
    assert not (root / "dbt_packages" / "helpers").exists()
    package(tmp_path / "helpers", {"macros/both.sql": "{% macro both(x) %}changed({{ x }}){% endmacro %}"})
    assert sql(root) == "select changed(a) as c from lake.main.n"


def test_a_git_package_is_pinned(tmp_path: Path) -> None:
    source = repository(tmp_path / "helpers")
    root = project(tmp_path, f"  - {{git: '{source}', revision: v1}}")
    deps(root, env={})
    assert sql(root) == EXPECTED
    lock = (root / "packages.lock").read_text()
    # The tag moves, the lock does not.
    repository(source, {"macros/both.sql": "{% macro both(x) %}moved{% endmacro %}"})
    deps(root, env={})
    assert (root / "packages.lock").read_text() == lock
    assert sql(root) == EXPECTED
    (found,) = deps(root, env={}, upgrade=True)
    assert found.is_new
    assert sql(root) == "select moved as c from lake.main.n"


def test_only_what_is_read_is_installed(tmp_path: Path) -> None:
    root = project(tmp_path, f"  - {{git: '{repository(tmp_path / 'helpers')}', revision: v1}}")
    deps(root, env={})
    installed = root / "dbt_packages" / "helpers"
    assert {path.relative_to(installed).as_posix() for path in installed.rglob("*.*") if path.is_file()} == PACKAGE.keys() - {
        "models/never.sql"
    }
    assert [node.model.name for node in compile(root, env={}).models] == ["n", "m"]


def test_changed_files_and_a_changed_declaration_are_found(tmp_path: Path) -> None:
    root = project(tmp_path, f"  - {{git: '{repository(tmp_path / 'helpers')}', revision: v1}}")
    deps(root, env={})
    file = root / "dbt_packages" / "helpers" / "macros" / "both.sql"
    file.write_text(file.read_text() + " ")
    said = "The files of the package 'helpers' in dbt_packages/helpers are not those of packages.lock"
    assert codes(root) == [f"packages-not-installed: {said}"]
    deps(root, env={})
    (root / "packages.yml").write_text((root / "packages.yml").read_text().replace("v1", "main"))
    assert codes(root) == ["packages-not-installed: packages.yml has changed since packages.lock was written"]


@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_an_archive(tmp_path: Path, kind: str) -> None:
    archive = tmp_path / f"helpers.{kind}"
    if kind == "tar":
        with tarfile.open(archive, "w:gz") as tar:
            for name, text in PACKAGE.items():
                entry = tarfile.TarInfo(f"helpers-1.0/{name}")
                entry.size = len(text)
                tar.addfile(entry, io.BytesIO(text.encode()))
    else:
        with zipfile.ZipFile(archive, "w") as zipped:
            for name, text in PACKAGE.items():
                zipped.writestr(f"helpers-1.0/{name}", text)
    root = project(tmp_path, f"  - tarball: {archive}")
    deps(root, env={})
    assert sql(root) == EXPECTED
    archive.write_bytes(b"other")
    assert sql(root) == EXPECTED


def test_an_archive_that_was_replaced_is_refused(tmp_path: Path) -> None:
    def pack(text: str) -> None:
        with zipfile.ZipFile(tmp_path / "a.zip", "w") as zipped:
            for name, content in (PACKAGE | {"macros/both.sql": text}).items():
                zipped.writestr(name, content)

    pack("{% macro both(x) %}one{% endmacro %}")
    root = project(tmp_path, "  - tarball: ../a.zip")
    deps(root, env={})
    pack("{% macro both(x) %}two{% endmacro %}")
    with pytest.raises(ProjectError, match=r"does not match packages\.lock"):
        deps(root, env={})
    assert sql(root) == "select one as c from lake.main.n"


@pytest.mark.parametrize("name", ["../outside.sql", "/tmp/outside.sql", "a/../../outside.sql"])
def test_an_archive_cannot_write_elsewhere(tmp_path: Path, name: str) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as zipped:
        zipped.writestr(name, "x")
    root = project(tmp_path, "  - tarball: ../a.zip")
    with pytest.raises(ProjectError, match="leads out of it"):
        deps(root, env={})
    assert not (root / "packages.lock").exists()


def test_a_package_of_a_package(tmp_path: Path) -> None:
    package(tmp_path / "inner", {"dbt_project.yml": "name: inner\n", "macros/i.sql": "{% macro i(x) %}i({{ x }}){% endmacro %}"})
    outer = {"dbt_project.yml": "name: helpers\n", "macros/b.sql": "{% macro both(x) %}{{ inner.i(x) }}{% endmacro %}"}
    package(tmp_path / "outer", {**outer, "packages.yml": "packages: [{local: ../inner}]\n"})
    root = project(tmp_path, "  - local: ../outer")
    assert [one.name for one in deps(root, env={})] == ["helpers", "inner"]
    assert sql(root) == "select i(a) as c from lake.main.n"


@pytest.mark.parametrize(
    ("packages", "of_helpers", "message"),
    [
        ("  - local: .", "", "This project names itself as a package"),
        ("  - local: ../helpers", "  - local: ../helpers", "The package 'helpers' names itself"),
        (
            "  - local: ../helpers",
            "  - local: ../shop",
            "Packages depend on each other in a cycle: this project -> helpers -> this project",
        ),
        ("  - local: ../helpers", "  - local: ../inner", "Packages depend on each other in a cycle: helpers -> inner -> helpers"),
        ("  - git: ../helpers", "  - git: ../helpers", "The package 'helpers' names itself"),
    ],
)
def test_packages_that_need_each_other(tmp_path: Path, packages: str, of_helpers: str, message: str) -> None:
    repository(tmp_path / "helpers", {**PACKAGE, "packages.yml": f"packages:\n{of_helpers}\n"})
    package(tmp_path / "inner", {"dbt_project.yml": "name: inner\n", "packages.yml": "packages: [{local: ../helpers}]\n"})
    with pytest.raises(ProjectError) as caught:
        deps(project(tmp_path, packages))
    (found,) = caught.value.diagnostics
    assert (found.code, found.message) == ("bad-packages", message)
    assert found.span is not None


def test_a_directory_without_a_project(tmp_path: Path) -> None:
    with pytest.raises(ProjectError) as caught:
        deps(tmp_path)
    assert [d.code for d in caught.value.diagnostics] == ["not-a-project"]


@pytest.mark.parametrize("name", ["packages.yml", "dependencies.yml"])
def test_packages_are_a_list(tmp_path: Path, name: str) -> None:
    root = project(tmp_path, "")
    (root / "packages.yml").unlink()
    (root / name).write_text("packages: {local: ../helpers}\n")
    with pytest.raises(ProjectError) as caught:
        deps(root)
    (found,) = caught.value.diagnostics
    assert (found.code, found.message, str(found.span)) == ("bad-packages", "`packages:` must be a list", f"{name}:1:11")


def test_a_package_that_two_others_need(tmp_path: Path) -> None:
    package(tmp_path / "helpers")
    for name in ("a", "b"):
        package(tmp_path / name, {"dbt_project.yml": f"name: {name}\n", "packages.yml": "packages: [{local: ../helpers}]\n"})
    assert [one.name for one in deps(project(tmp_path, "  - local: ../a\n  - local: ../b"))] == ["a", "helpers", "b"]


@pytest.mark.parametrize(("address", "revision"), [("../nothing", "v1"), ("../helpers", "v2")])
def test_what_git_says_of_a_package_that_it_cannot_fetch(tmp_path: Path, address: str, revision: str) -> None:
    repository(tmp_path / "helpers")
    with pytest.raises(ProjectError) as caught:
        deps(project(tmp_path, f"  - git: {address}\n    revision: {revision}"))
    (found,) = caught.value.diagnostics
    assert found.code == "package-unavailable"
    says = {"v1": "does not appear to be a git repository", "v2": "couldn't find remote ref v2"}[revision]
    assert found.message.startswith("git could not fetch the package: ")
    assert says in found.message


def test_a_macro_of_the_project_replaces_one_of_a_package(tmp_path: Path) -> None:
    package(tmp_path / "helpers")
    own = {
        "macros/own.sql": "{% macro spark__cents(x) %}own({{ x }}){% endmacro %}",
        "models/m.sql": "select {{ helpers.cents('1') }} as c",
    }
    root = project(tmp_path, "  - local: ../helpers", **own)
    deps(root, env={})
    assert sql(root) == "select own(1) as c"


@pytest.mark.parametrize("below", ["[1]", "7", "a", "{}"])
def test_what_a_package_has_below_its_name_in_vars_is_taken_only_if_it_is_a_mapping(below: str, tmp_path: Path) -> None:
    text = f"name: helpers\nvars: {{unit: 100, helpers: {below}}}\n"
    package(tmp_path / "helpers", {**PACKAGE, "dbt_project.yml": text})
    root = project(tmp_path, "  - local: ../helpers")
    deps(root)
    assert sql(root) == EXPECTED


def test_variables_of_a_package(tmp_path: Path) -> None:
    package(tmp_path / "helpers")
    root = project(tmp_path, "  - local: ../helpers", **{"models/m.sql": "select {{ helpers.cents('1') }} as c, {{ var('unit', 7) }} as d"})
    deps(root, env={})
    assert sql(root) == "select 1 * 100 as c, 7 as d"
    write(root, {"mvbuild.yml": "name: shop\nvars: {helpers: {unit: 5}}\n"})
    assert sql(root) == "select 1 * 5 as c, 7 as d"
    write(root, {"mvbuild.yml": "name: shop\nvars: {unit: 6}\n"})
    assert sql(root) == "select 1 * 6 as c, 6 as d"


def test_tests_of_a_package(tmp_path: Path) -> None:
    package(tmp_path / "helpers")
    tests = "models: [{name: n, columns: [{name: a, data_tests: [helpers.least: {value: 3}]}]}]\n"
    root = project(tmp_path, "  - local: ../helpers", **{"models/n.yml": tests})
    deps(root, env={})
    (test,) = compile(root, env={}).tests
    assert test.query is not None
    assert test.query.sql.text.endswith("where a < 3")
    write(root, {"models/n.yml": tests.replace("least", "most")})
    assert codes(root) == ["unknown-key: Unknown test 'helpers.most'"]


def test_a_macro_that_is_not_there(tmp_path: Path) -> None:
    package(tmp_path / "helpers")
    root = project(tmp_path, "  - local: ../helpers", **{"models/m.sql": "select {{ helpers.nope() }}"})
    deps(root, env={})
    assert codes(root) == ["undefined-name: The package 'helpers' has no macro 'nope'"]
    write(root, {"models/m.sql": "select {{ helpers['_load'] }}"})
    assert codes(root)[0].startswith("unsafe-template")


def test_packages_of_the_registry(tmp_path: Path) -> None:
    root = project(tmp_path, "  - {package: dbt-labs/dbt_utils, version: 1.1.1}", **{"models/m.sql": "select 1 as a"})
    assert deps(root, env={}) == ()
    assert sql(root) == "select 1 as a"
    write(root, {"packages.yml": "packages: [{package: dbt-labs/codegen, version: 1.0.0}]\n"})
    with pytest.raises(ProjectError, match="'dbt-labs/codegen' names a package of dbt's registry"):
        deps(root, env={})


def test_secrets_are_not_in_the_lock(tmp_path: Path) -> None:
    source = repository(tmp_path / "helpers-s3cr3t-token")
    root = project(tmp_path, "  - {git: \"../helpers-{{ env_var('GIT_TOKEN') }}\", revision: v1}")
    deps(root, env={"GIT_TOKEN": "s3cr3t-token"})
    assert source.exists()
    assert "s3cr3t" not in (root / "packages.lock").read_text()
    assert sql(root) == EXPECTED
