"""options and environment of a caller -> what is printed where: colours, quiet, pipes, interrupts, the flags that dbt's callers pass."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from mvbuild import api
from mvbuild.cli.main import main
from unit.cli.bad_input import call, findings, lay_out

MODELS = {"models/a.sql": "select 1 as id\n", "models/b.sql": "select * from a\n", "models/c.sql": "select * from b\n"}
MVBUILD = [sys.executable, "-m", "mvbuild.cli.main"]
BASE = {k: v for k, v in os.environ.items() if not k.startswith(("MVBUILD_", "DBT_", "NO_COLOR"))}


@pytest.mark.parametrize(
    ("command", "env", "names"),
    [
        ("ls --output name", {}, "a b c"),
        ("ls --output name --select a b", {}, "a b"),
        ("ls --select a b --output name", {}, "a b"),
        ("ls --output name -s a -s b", {}, "a b"),
        ("ls --output name -m a+1 --exclude b", {}, "a"),
        ("ls --output name --select=a b --exclude a c", {}, "b"),
        ("ls --output name", {"MVBUILD_SELECT": "a b"}, "a b"),
        ("ls --output name", {"DBT_SELECT": "c"}, "c"),
        ("ls --output name --resource-type seed source", {}, ""),
        ("--quiet ls --output name --no-partial-parse --no-version-check", {}, "a b c"),
        ("--no-use-colors ls --output name -d", {}, "a b c"),
        ("ls --output name -s shop.a models/b.sql c.sql", {}, "a b c"),
    ],
)
def test_selection(
    command: str, env: dict[str, str], names: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lay_out(tmp_path, MODELS)
    outcome = call(command, tmp_path, env, monkeypatch, capsys)
    assert (outcome.exit, outcome.stdout.split()) == (0, names.split()), outcome


def test_every_line_of_ls_is_a_selector(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    source = "sources:\n  - name: raw\n    tables: [{name: orders}]\n"
    lay_out(tmp_path, {"models/marts/a.sql": "select * from raw.orders\n", "models/s.yml": source, "seeds/s.csv": "a\n1\n"})
    for line in call("ls", tmp_path, {}, monkeypatch, capsys).stdout.split():
        again = call(f"ls -s {line}+", tmp_path, {}, monkeypatch, capsys)
        assert again.stdout.strip(), line
        assert again.stderr == ""


@pytest.mark.parametrize("name", ["MVBUILD_PROJECT_DIR", "DBT_PROJECT_DIR"])
def test_the_environment_gives_flags(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lay_out(tmp_path / "project", MODELS)
    env = {name: str(tmp_path / "project"), "DBT_TARGET_PATH": str(tmp_path / "out"), "MVBUILD_VARS": "{a: 1}", "DBT_QUIET": "true"}
    outcome = call("compile", tmp_path, env, monkeypatch, capsys)
    assert (outcome.exit, outcome.stdout, outcome.stderr) == (0, "", "")
    assert (tmp_path / "out/manifest.json").exists()


def test_quiet_leaves_errors_and_drops_warnings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lay_out(tmp_path, MODELS)
    assert "selects nothing" in call("ls -s nothing", tmp_path, {}, monkeypatch, capsys).stderr
    assert call("ls -s nothing -q", tmp_path, {}, monkeypatch, capsys).stderr == ""
    assert findings(call("ls -q -s x:y", tmp_path, {}, monkeypatch, capsys).stderr) == ["unknown-selector"]


@pytest.mark.parametrize(
    ("command", "env", "is_colored"),
    [
        ("ls -s x:y", {}, False),
        ("--use-colors ls -s x:y", {}, True),
        ("ls -s x:y --use-colors", {}, True),
        ("ls -s x:y", {"DBT_USE_COLORS": "1"}, True),
        ("ls -s x:y", {"NO_COLOR": "1", "DBT_USE_COLORS": "1"}, True),
        ("--use-colors ls -s x:y --no-use-colors", {}, False),
    ],
)
def test_colors(
    command: str, env: dict[str, str], is_colored: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lay_out(tmp_path, MODELS)
    outcome = call(command, tmp_path, env, monkeypatch, capsys)
    assert ("\x1b[" in outcome.stderr) == is_colored


@pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals")
@pytest.mark.parametrize(("env", "is_colored"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colors_on_a_terminal(env: dict[str, str], is_colored: bool, tmp_path: Path) -> None:
    import pty

    lay_out(tmp_path, {"models/a.sql": "drop table x\n"})
    leader, follower = pty.openpty()
    done = subprocess.run([*MVBUILD, "compile"], cwd=tmp_path, env=BASE | env, stderr=follower, stdout=subprocess.PIPE, check=False)
    os.close(follower)
    said = os.read(leader, 10_000).decode()
    os.close(leader)
    assert done.returncode == 2
    assert ("\x1b[" in said) == is_colored


@pytest.mark.skipif(os.name != "posix", reason="a shell")
def test_a_reader_that_goes_away(tmp_path: Path) -> None:
    lay_out(tmp_path, {f"models/{'m' * 100}{i}.sql": "select 1 as id\n" for i in range(1000)})
    first = f"set -o pipefail; {' '.join(MVBUILD)} ls | head -1"
    done = subprocess.run(["bash", "-c", first], cwd=tmp_path, env=BASE, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr, done.stdout.count("\n")) == (0, "", 1)


@pytest.mark.skipif(os.name != "posix", reason="a shell")
@pytest.mark.parametrize("pipe", ["|", "|&"])
def test_a_reader_that_goes_away_does_not_change_the_exit_code(pipe: str, tmp_path: Path) -> None:
    lay_out(tmp_path, {f"models/m{i}.sql": "select 1 as id, as x\n" for i in range(30)})
    words = f"({' '.join(MVBUILD)} compile; echo $? > code) {pipe} true; cat code"
    done = subprocess.run(["bash", "-c", words], cwd=tmp_path, env=BASE, capture_output=True, text=True, check=False)
    assert done.stdout == "2\n"


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt(tmp_path: Path, sent: signal.Signals, code: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        uri = f"http://127.0.0.1:{server.getsockname()[1]}"
        lay_out(tmp_path, {**MODELS, "mvbuild.yml": f"name: shop\ntargets: {{dev: {{catalog: {{type: rest, uri: '{uri}'}}}}}}\n"})
        running = subprocess.Popen([*MVBUILD, "plan"], cwd=tmp_path, env=BASE, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        connection, _ = server.accept()  # and never an answer
        running.send_signal(sent)
        out, err = running.communicate(timeout=120)
        connection.close()
    assert (running.returncode, out) == (code, "")
    assert err.lstrip() == "interrupted: what was published stays, nothing else was changed\n"


def test_an_unforeseen_failure_goes_into_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from mvbuild.api import compilation

    def fails(*_: object, **__: object) -> None:
        raise KeyError("a bug")

    monkeypatch.setattr(compilation, "compile", fails)
    lay_out(tmp_path, MODELS)
    outcome = call("ls", tmp_path, {}, monkeypatch, capsys)
    assert (outcome.exit, findings(outcome.stderr)) == (2, ["internal"])
    assert "Traceback" not in outcome.stderr
    log = Path(outcome.stderr.partition("details are in ")[2].split("\n")[0])
    assert "KeyError: 'a bug'" in log.read_text(encoding="utf-8")
    log.unlink()
    shown = call("ls --debug", tmp_path, {}, monkeypatch, capsys).stderr
    assert "KeyError: 'a bug'" in shown
    Path(shown.partition("details are in ")[2].split("\n")[0]).unlink()


def test_a_template_warns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    lay_out(tmp_path, {"models/a.sql": "{{ exceptions.warn('old') }}select 1 as id\n"})
    outcome = call("ls", tmp_path, {}, monkeypatch, capsys)
    assert (outcome.exit, outcome.stdout) == (0, "shop.a\n")
    assert outcome.stderr.startswith("warning[template-error]: old\n  --> models/a.sql:1:1\n")


def test_secrets_in_the_project_file_are_never_shown(tmp_path: Path) -> None:
    """A diagnostic shows the line that the user wrote; not the password in it."""
    (tmp_path / "mvbuild.yml").write_text(
        "name: shop\ntargets: {dev: {catalog: {name: lake, type: rest, uri: 'http://ann:hunter22@127.0.0.1:9', token: canary77}}}\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "mvbuild.cli.main", "plan", "--project-dir", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "mvbuild.yml:2:17" in done.stderr
    assert "127.0.0.1:9: Connection refused" in done.stderr
    assert "hunter22" not in done.stdout + done.stderr
    assert "canary77" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("directory", "name"),
    [("shop", "shop"), ("My Shop 2", "my_shop_2"), ("próject", "project"), ("2026-sales", "sales"), ("店", "project")],
)
def test_init_names_the_project_after_its_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], directory: str, name: str
) -> None:
    monkeypatch.setattr(sys, "argv", ["mvbuild", "init", str(tmp_path / directory)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    assert f"name: {name}\n" in (tmp_path / directory / "mvbuild.yml").read_text(encoding="utf-8")
    capsys.readouterr()
    assert call("compile", tmp_path / directory, {}, monkeypatch, capsys).exit == 0


@pytest.mark.parametrize(("directory", "shown"), [("--x", "./--x"), ("-", "./-"), ("a b", "'a b'"), ("x", "x")])
def test_init_shows_a_cd_that_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], directory: str, shown: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["mvbuild", "init", "--name", "shop", "--", directory])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    said = capsys.readouterr()
    (line,) = [line for line in (said.out + said.err).splitlines() if line.startswith("  cd ")]
    assert line == f"  cd {shown}"
    subprocess.run(["sh", "-c", f"{line} && test -f mvbuild.yml"], check=True)


def test_init_with_an_empty_name_makes_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["mvbuild", "init", ""])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "error[command-line]: DIRECTORY is empty" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("chosen", ["definition", "storage"])
def test_init_offers_what_engines_get_from_an_mv(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], chosen: str
) -> None:
    options = ["--catalog-view", chosen] if chosen == "storage" else []
    monkeypatch.setattr(sys, "argv", ["mvbuild", "init", str(tmp_path), "--name", "shop", *options])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    assert ("`+catalog_view: storage`" in capsys.readouterr().err) == (chosen == "definition")
    assert f"\n      +catalog_view: {chosen}\n" in (tmp_path / "mvbuild.yml").read_text(encoding="utf-8")
    configured = {m.model.name: m.model.config.catalog_view for m in api.compile(tmp_path).views}
    assert configured == {"daily_revenue": chosen, "monthly_revenue": chosen}


def test_init_never_overwrites_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "README.md").write_text("mine\n", encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["mvbuild", "init", str(tmp_path), "--name", "shop"])
    for code in (0, 2):
        with pytest.raises(SystemExit) as ended:
            main()
        assert (ended.value.code or 0) == code
    assert (tmp_path / "README.md").read_text(encoding="utf-8") == "mine\n"
    assert "kept the existing" in capsys.readouterr().err
