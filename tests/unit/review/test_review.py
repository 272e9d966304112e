"""A branch of a git repository against main: what changed, of which class, for whom; the working copy is not changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mvbuild import api
from mvbuild.diagnostics import ProjectError
from mvbuild.review.as_json import review_object
from mvbuild.review.markdown import MARK, review_markdown
from mvbuild.review.model import NodeChange, Review
from mvbuild.review.text import review_text
from mvbuild.serve.words import size
from unit.review.repositories import commit, git, repository
from unit.worlds import write_project

FILES = {
    "mvbuild.yml": "name: shop\nvars: {status: paid}\n",
    "seeds/orders.csv": "id,customer,amount,status,day\n1,1,5,paid,2026-01-01\n",
    "seeds/customers.csv": "id,name\n1,Ann\n",
    "macros/m.sql": "{% macro money(c) %}CAST({{ c }} AS INT){% endmacro %}",
    "models/clean.sql": "SELECT id, customer, {{ money('amount') }} AS amount, status, day FROM {{ ref('orders') }} WHERE id IS NOT NULL",
    "models/daily.sql": "SELECT day, sum(amount) AS revenue FROM {{ ref('clean') }} WHERE status = '{{ var('status') }}' GROUP BY day",
    "models/by_customer.sql": "WITH paid AS (SELECT * FROM {{ ref('clean') }} WHERE status = 'paid')\n"
    "SELECT customer, count(*) AS orders, sum(amount) AS revenue FROM paid GROUP BY customer",
    "models/names.sql": "SELECT id, name FROM {{ ref('customers') }} WHERE id > 0",
    "models/top.sql": "SELECT n.name, b.revenue FROM {{ ref('by_customer') }} AS b JOIN {{ ref('names') }} AS n ON n.id = b.customer",
    "models/copied.sql": "SELECT * FROM {{ ref('clean') }}",
    "models/reader.sql": "SELECT id FROM {{ ref('copied') }} WHERE status = 'paid'",
    "models/s.yml": "models:\n  - name: clean\n    columns: [{name: status, data_tests: [not_null]}]\n",
}
FIVE = {
    "models/top.sql": "-- who\nselect n.name, b.revenue\nfrom {{ ref('by_customer') }} as b\njoin {{ ref('names') }} as n on n.id = b.customer",
    "models/by_customer.sql": "SELECT c.customer, count(*) AS orders, sum(c.amount) AS revenue FROM {{ ref('clean') }} AS c\n"
    "WHERE 'paid' = c.status GROUP BY c.customer",
    "models/daily.sql": FILES["models/daily.sql"].replace("AS revenue", "AS revenue, count(*) AS orders"),
    "models/names.sql": FILES["models/names.sql"] + " AND name IS NOT NULL",
    "models/clean.sql": FILES["models/clean.sql"].replace("status, ", ""),
}


def reviewed(root: Path, changed: dict[str, str], against: str = "main", **options: object) -> Review:
    if not (root / ".git").exists():
        repository(root, FILES)
    git(root, "checkout", "-q", "-B", "feature")
    write_project(root, changed)
    return api.review(api.compile(root, env={}), against, **options)  # type: ignore[arg-type]


def classes(review: Review) -> dict[str, str]:
    return {change.name: change.kind for change in review.changes}


def of(review: Review, name: str) -> NodeChange:
    return next(change for change in review.changes if change.name == name)


def test_five_models_in_the_five_ways(tmp_path: Path) -> None:
    review = reviewed(tmp_path, FIVE)
    assert classes(review) == {
        "clean": "breaking",
        "names": "filter-narrowed",
        "daily": "columns-added",
        "by_customer": "equal",
        "top": "formatting",
    }
    assert [c.name for c in review.changes] == ["clean", "names", "daily", "by_customer", "top"]


def test_a_manifest_gives_the_same_classes(tmp_path: Path) -> None:
    root = repository(tmp_path / "shop", FILES)
    api.write_artifacts(api.compile(root, env={}, target_path=tmp_path / "kept"))
    review = reviewed(root, FIVE, str(tmp_path / "kept"))
    assert classes(review) == classes(reviewed(root, {}, "main"))
    assert review.lint is None


def test_breaking_for_whom(tmp_path: Path) -> None:
    clean = of(reviewed(tmp_path, {"models/clean.sql": FIVE["models/clean.sql"]}), "clean")
    users = {(b.name, b.certain, str(b.span)) for b in clean.breaks}
    assert users == {
        ("by_customer", True, "models/by_customer.sql:1:54"),
        ("daily", True, "models/daily.sql:1:66"),
        ("reader", True, "models/reader.sql:1:42"),
        ("not_null_clean_status", True, "models/s.yml:3:43"),
    }
    assert {id.rpartition(".")[2] for id in clean.downstream} == {"by_customer", "copied", "daily", "reader", "top"}


def test_who_was_changed_as_well_is_not_told(tmp_path: Path) -> None:
    adapted = {path: FILES[path].replace("status = 'paid'", "id > 0") for path in ("models/by_customer.sql", "models/reader.sql")}
    adapted["models/daily.sql"] = "SELECT day, sum(amount) AS revenue FROM {{ ref('clean') }} GROUP BY day"
    clean = of(
        reviewed(tmp_path, adapted | {"models/clean.sql": FIVE["models/clean.sql"], "models/s.yml": "models: [{name: clean}]\n"}), "clean"
    )
    assert clean.breaks == ()
    assert clean.kind == "breaking"


def test_a_column_with_another_type(tmp_path: Path) -> None:
    review = reviewed(tmp_path, {"macros/m.sql": FILES["macros/m.sql"].replace("INT", "BIGINT")})
    clean = of(review, "clean")
    assert clean.kind == "breaking"
    assert clean.findings[0].message == "column 'amount' is now bigint, and was int"
    assert clean.because == ("the macro 'money' was changed",)
    assert {b.name for b in clean.breaks} == {"by_customer", "daily"}
    assert review.macros == ("money",)


def test_added_removed_renamed_and_configured(tmp_path: Path) -> None:
    root = repository(tmp_path, FILES)
    (root / "models" / "reader.sql").unlink()
    (root / "models" / "names.sql").rename(root / "models" / "people.sql")
    changed = {
        "models/new.sql": "SELECT 1 AS one",
        "models/top.sql": FILES["models/top.sql"].replace("ref('names')", "ref('people')"),
        "models/people.sql": "{{ config(previous_name='names') }}" + FILES["models/names.sql"],
        "models/copied.sql": "{{ config(tags=['x'], refresh_policy='full') }}" + FILES["models/copied.sql"],
        "models/s.yml": FILES["models/s.yml"].replace("not_null", "unique") + "  - {name: daily, description: Money.}\n",
    }
    review = reviewed(root, changed)
    assert classes(review) == {
        "new": "added",
        "reader": "removed",
        "people": "breaking",
        "top": "equal",
        "copied": "configuration",
        "daily": "documentation",
        "unique_clean_status": "added",
        "not_null_clean_status": "removed",
    }
    people, copied = of(review, "people"), of(review, "copied")
    assert (people.what, people.former) == ("renamed", "names")
    assert [(s.name, s.old, s.new) for s in copied.settings] == [("refresh_policy", None, "full"), ("tags", None, ["x"])]


def test_a_renamed_file_without_more(tmp_path: Path) -> None:
    root = repository(tmp_path, FILES)
    (root / "models" / "reader.sql").rename(root / "models" / "lector.sql")
    (change,) = reviewed(root, {}).changes
    assert (change.what, change.name, change.former) == ("renamed", "lector", "reader")


def test_vars(tmp_path: Path) -> None:
    review = reviewed(tmp_path, {"mvbuild.yml": FILES["mvbuild.yml"].replace("paid", "open")})
    assert review.vars == ("status",)
    assert classes(review) == {"daily": "rows"}
    assert of(review, "daily").because == ("the variable 'status' was changed",)


def test_an_ephemeral_model_changes_those_that_it_stands_in(tmp_path: Path) -> None:
    files = FILES | {"models/names.sql": "{{ config(materialized='ephemeral') }}" + FILES["models/names.sql"]}
    root = repository(tmp_path, files)
    review = reviewed(root, {"models/names.sql": files["models/names.sql"] + " AND name <> ''"})
    assert classes(review) == {"names": "filter-narrowed", "top": "filter-narrowed"}
    assert of(review, "top").because == ("the ephemeral model 'names' was changed",)


def test_seeds(tmp_path: Path) -> None:
    review = reviewed(tmp_path, {"seeds/customers.csv": "id,name\n1,Bob\n"})
    assert classes(review) == {"customers": "rows"}
    assert [r.relation for r in review.refreshes] == ["lake.main.customers", "lake.main.names", "lake.main.top"]


def test_nothing_differs(tmp_path: Path) -> None:
    review = reviewed(tmp_path, {})
    assert not review.has_changes
    assert review_text(review, size) == "Against main: nothing differs."


def test_formatting_alone_is_no_change(tmp_path: Path) -> None:
    review = reviewed(tmp_path, {"models/top.sql": FIVE["models/top.sql"]})
    assert classes(review) == {"top": "formatting"}
    assert not review.has_changes
    assert review.refreshes == ()


def test_what_is_refreshed_where_no_catalog_is_there(tmp_path: Path) -> None:
    review = reviewed(tmp_path, {"models/names.sql": FIVE["models/names.sql"]})
    assert review.unknown == "the project's own catalog has not been created yet"
    assert [(r.relation, r.why) for r in review.refreshes] == [
        ("lake.main.names", "its definition was changed"),
        ("lake.main.top", "it reads names"),
    ]
    assert not (tmp_path / ".mvbuild").exists()


def test_new_findings_of_lint_only(tmp_path: Path) -> None:
    review = reviewed(tmp_path, {"models/daily.sql": FILES["models/daily.sql"].replace("sum(amount)", "sum(amount) * max(rand())")})
    assert review.lint is not None
    assert "models/daily.sql" in {d.span.file.path for d in review.lint if d.span}
    assert not any(d.span and d.span.file.path == "models/copied.sql" for d in review.lint)


def test_selection(tmp_path: Path) -> None:
    assert classes(reviewed(tmp_path, FIVE, select=["names", "top"])) == {"names": "filter-narrowed", "top": "formatting"}


def test_nothing_of_the_working_copy_is_touched(tmp_path: Path) -> None:
    root = repository(tmp_path / "shop", FILES)
    commit(root)
    git(root, "checkout", "-q", "-b", "feature")
    write_project(root, FIVE)
    git(root, "add", "models/top.sql")

    def state() -> list[tuple[str, bytes, int]]:
        files = sorted(p for p in root.rglob("*") if p.is_file() and p.parent != root / "target")
        return [(str(p), p.read_bytes(), p.stat().st_mtime_ns) for p in files]

    before = state()
    api.review(api.compile(root, env={}), "main")
    assert state() == before


def test_a_project_in_a_folder_with_models_beside_it(tmp_path: Path) -> None:
    top = repository(tmp_path, {"data/shop/mvbuild.yml": "name: shop\nmodel-paths: [../models]\n", "data/models/a.sql": "SELECT 1 AS a"})
    write_project(top, {"data/models/a.sql": "SELECT 1 AS a, 2 AS b"})
    assert classes(api.review(api.compile(top / "data" / "shop", env={}), "main")) == {"a": "columns-added"}


def test_a_project_that_was_not_there(tmp_path: Path) -> None:
    root = repository(tmp_path, {"README.md": "x"})
    write_project(root, FILES)
    review = api.review(api.compile(root, env={}), "main")
    assert {c.kind for c in review.changes} == {"added"}
    assert [w.message for w in review.warnings] == ["There was no project at 'main': everything counts as new"]


def test_the_merge_base(tmp_path: Path) -> None:
    root = repository(tmp_path, FILES)
    git(root, "checkout", "-q", "-b", "feature")
    write_project(root, {"models/names.sql": FIVE["models/names.sql"]})
    commit(root)
    git(root, "checkout", "-q", "main")
    write_project(root, {"models/top.sql": "SELECT 1 AS one"})
    commit(root)
    git(root, "checkout", "-q", "feature")
    graph = api.compile(root, env={})
    assert classes(api.review(graph, "main...")) == {"names": "filter-narrowed"}
    assert set(classes(api.review(graph, "main"))) == {"names", "top"}


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ({"models/top.sql": "SELECT FROM WHERE"}, "The project at 'main' does not compile: "),
        ({"models/top.sql": "SELECT * FROM {{ ref('none') }}"}, "The project at 'main' does not compile: "),
        ({"mvbuild.yml": "name: [\n"}, "The project at 'main' does not compile: "),
    ],
)
def test_a_ref_that_does_not_compile(tmp_path: Path, broken: dict[str, str], said: str) -> None:
    root = repository(tmp_path, FILES | broken)
    with pytest.raises(ProjectError) as caught:
        reviewed(root, FILES)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "bad-state"
    assert diagnostic.message.startswith(said)
    assert diagnostic.notes


def test_a_shallow_clone(tmp_path: Path) -> None:
    root = repository(tmp_path / "origin", FILES)
    git(root, "checkout", "-q", "-b", "feature")
    commit(root)
    git(tmp_path, "clone", "-q", "--depth", "1", "--branch", "feature", root.as_uri(), str(tmp_path / "clone"))
    with pytest.raises(ProjectError) as caught:
        api.review(api.compile(tmp_path / "clone", env={}), "main")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "bad-ref"
    assert "git fetch --depth=1 origin main:main" in diagnostic.help


def test_a_branch_that_only_the_remote_has(tmp_path: Path) -> None:
    root = repository(tmp_path / "origin", FILES)
    git(root, "checkout", "-q", "-b", "feature")
    git(tmp_path, "clone", "-q", str(root), str(tmp_path / "clone"))
    with pytest.raises(ProjectError) as caught:
        api.review(api.compile(tmp_path / "clone", env={}), "main")
    assert caught.value.diagnostics[0].help == "Did you mean 'origin/main'?"


def test_markdown(tmp_path: Path) -> None:
    review = reviewed(tmp_path, FIVE | {"models/a|b.sql": "SELECT 1 AS `<x>`"})
    text = review_markdown(review, size)
    assert text.startswith(f"{MARK}\n\n### Plan against `main`\n")
    head, _, folded = text.partition("<details>")
    rows = [line for line in head.splitlines() if line.startswith("| `")]
    assert [line.split(" | ")[1] for line in rows] == ["**breaking**", "filter narrowed", "columns added", "added", "equal by rewriting"]
    assert rows[0].startswith("| `clean` | **breaking** | column 'status' removed | breaks ")
    assert "| `a\\|b` | added |" in head
    assert "Nothing but formatting: `top`." in head
    assert folded.count("<summary>") == text.count("</details>")


def test_markdown_of_very_many_changes_fits_into_a_comment(tmp_path: Path) -> None:
    root = repository(tmp_path, FILES)
    review = reviewed(root, {f"models/m{i}.sql": f"SELECT {i} AS a" for i in range(300)})
    text = review_markdown(review, size)
    assert len(text) < 65_536
    assert "... and 250 more" in text


def test_objects_for_programs(tmp_path: Path) -> None:
    found = json.loads(json.dumps(review_object(reviewed(tmp_path, FIVE))))
    assert found["summary"]["changes"] == {"breaking": 1, "filter-narrowed": 1, "columns-added": 1, "equal": 1, "formatting": 1}
    clean = found["changes"][0]
    assert {b["name"] for b in clean["breaks"] if b["certain"]} == {"by_customer", "daily", "reader", "not_null_clean_status"}
    assert found["unknown"] == "the project's own catalog has not been created yet"
