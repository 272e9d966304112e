from __future__ import annotations

from pathlib import Path

import pytest

from mvbuild.adapters.spark.java import find_java
from mvbuild.ports.engine import EngineError


def fake(folder: Path, output: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    java = folder / "java"
    java.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{output}\nEND\n")
    java.chmod(0o755)
    return java


@pytest.mark.parametrize(
    ("output", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment', 17),
        ('Picked up JAVA_TOOL_OPTIONS: -Dx=1\nopenjdk version "21" 2023-09-19', 21),
        ('java version "25-ea" 2025-09-16', 25),
    ],
)
def test_java_on_the_path(tmp_path: Path, output: str, major: int) -> None:
    java = fake(tmp_path, output)
    found = find_java({"PATH": f"{tmp_path}:/bin:/usr/bin"})
    assert (found.path, found.major) == (java, major)


def test_java_home_comes_first_and_its_release_file_is_enough(tmp_path: Path) -> None:
    fake(tmp_path / "path", 'java version "11.0.2"')
    java = fake(tmp_path / "home" / "bin", "never asked")
    (tmp_path / "home" / "release").write_text('IMPLEMENTOR="x"\nJAVA_VERSION="21.0.4"\n')
    found = find_java({"PATH": str(tmp_path / "path"), "JAVA_HOME": str(tmp_path / "home")})
    assert (found.path, found.major) == (java, 21)


def test_a_link_on_the_path_leads_to_a_release_file(tmp_path: Path) -> None:
    java = fake(tmp_path / "home" / "bin", "never asked")
    (tmp_path / "home" / "release").write_text('JAVA_VERSION="21.0.4"\n')
    (tmp_path / "java").symlink_to(java)
    found = find_java({"PATH": str(tmp_path)})
    assert (found.path, found.major) == (tmp_path / "java", 21)


@pytest.mark.parametrize(("version", "major"), [("11.0.2", 11), ("1.8.0_392", 8)])
def test_an_old_java_is_named_with_its_place(tmp_path: Path, version: str, major: int) -> None:
    java = fake(tmp_path, f'java version "{version}"')
    with pytest.raises(EngineError, match=f"Java {major} was found at {java}") as caught:
        find_java({"PATH": f"{tmp_path}:/bin:/usr/bin"})
    assert caught.value.code == "wrong-java"


def test_no_java(tmp_path: Path) -> None:
    for env in ({"PATH": str(tmp_path)}, {}, {"JAVA_HOME": str(tmp_path)}):
        with pytest.raises(EngineError) as caught:
            find_java(env)
        assert caught.value.code == "no-java"


def test_something_that_is_called_java(tmp_path: Path) -> None:
    fake(tmp_path, "The operation couldn't be completed. Unable to locate a Java Runtime.")
    with pytest.raises(EngineError, match="Unable to locate a Java Runtime") as caught:
        find_java({"PATH": f"{tmp_path}:/bin:/usr/bin"})
    assert caught.value.code == "no-java"
