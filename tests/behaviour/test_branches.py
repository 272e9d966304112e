"""A catalog as a branch sees it: writes are visible only there until the branch becomes current, and main does not change."""

from __future__ import annotations

from dataclasses import replace

import pytest

from behaviour.world import World, layout, name, table_commit, view_commit
from mvbuild.ports.catalog import Catalog, CatalogError, CommitConflict
from mvbuild.ports.commits import BranchCommit, DropCommit
from mvbuild.ports.states import TableState, ViewState

PR = "pr-1"


@pytest.fixture
def branched(world: World) -> World:
    if not world.catalog.has_branches:
        with pytest.raises(CatalogError):
            world.catalog.on_branch(PR)
        pytest.skip("this catalog says that it has no branches")
    world.catalog.ensure_namespace(("mart",))
    return world


def table_of(catalog: Catalog, text: str) -> TableState:
    found = catalog.load([name(text)])[name(text)]
    assert isinstance(found, TableState)
    return found


def view_of(catalog: Catalog, text: str) -> ViewState:
    found = catalog.load([name(text)])[name(text)]
    assert isinstance(found, ViewState)
    return found


def shown(state: TableState) -> object:
    """What a reader of main sees of a table."""
    own = {k: v for k, v in state.properties.items() if not k.startswith("mvbuild.branch.")}
    refs = {k: v for k, v in state.refs.items() if k != PR}
    return state.current_snapshot_id, state.schema, state.partition_by, state.sort_by, own, refs, state.snapshot_log


def written(world: World, text: str) -> TableState:
    world.catalog.create_table(name(text), layout(id="long"), {"old": "1"})
    return world.write(name(text), {"id": [1]}, "main")


def built(world: World, text: str) -> TableState:
    """The branch's table with a snapshot and properties of its own."""
    lens = world.catalog.on_branch(PR)
    lens.create_branch(table_of(lens, text), "audit")
    world.write(name(text), {"id": [2]}, "audit")
    here = table_of(lens, text)
    change = table_commit(
        here, set_snapshot_id=here.refs["audit"], drop_branches=("audit",), set_properties={"new": "2"}, remove_properties=("old",)
    )
    found = lens.commit([change])[here.identifier]
    assert isinstance(found, TableState)
    return found


def test_what_is_committed_on_a_branch_is_seen_there_alone(branched: World) -> None:
    before = written(branched, "mart.t")
    made = built(branched, "mart.t")
    again = table_of(branched.catalog.on_branch(PR), "mart.t")
    assert replace(made, snapshot_log=()) == replace(again, snapshot_log=())
    assert made.current_snapshot_id != before.current_snapshot_id
    assert (made.properties.get("old"), made.properties["new"]) == (None, "2")
    main = table_of(branched.catalog, "mart.t")
    assert shown(main) == shown(before)
    assert main.refs[PR] == made.current_snapshot_id
    assert table_of(branched.catalog.on_branch("other"), "mart.t").current_snapshot_id == before.current_snapshot_id


def test_publishing_makes_exactly_the_branch_current(branched: World) -> None:
    written(branched, "mart.t")
    made = built(branched, "mart.t")
    branched.catalog.commit([BranchCommit(identifier=made.identifier, branch=PR, to="publish")])
    main = table_of(branched.catalog, "mart.t")
    assert shown(main)[:5] == shown(made)[:5]
    assert (main.properties, PR in main.refs) == (dict(made.properties), False)
    assert main.snapshot_log[-1][1] == made.current_snapshot_id


def test_dropping_a_branch(branched: World) -> None:
    before = written(branched, "mart.t")
    built(branched, "mart.t")
    branched.catalog.commit([BranchCommit(identifier=before.identifier, branch=PR, to="drop")])
    main = table_of(branched.catalog, "mart.t")
    assert (main.refs, main.properties, main.current_snapshot_id) == (before.refs, before.properties, before.current_snapshot_id)


def test_another_layout_is_the_branchs_own(branched: World) -> None:
    before = written(branched, "mart.t")
    lens = branched.catalog.on_branch(PR)
    wider = layout(id="long", more="string")
    scratch = name("mvbuild_scratch.s1")
    lens.ensure_namespace(("mvbuild_scratch",))
    lens.stage(table_of(lens, "mart.t"), wider, scratch)
    head = branched.write(scratch, {"id": [3], "more": ["x"]}, "main").current_snapshot_id
    here = table_of(lens, "mart.t")
    lens.commit([table_commit(here, set_snapshot_id=head, staged=scratch)])
    lens.drop_scratch(scratch)
    made = table_of(lens, "mart.t")
    assert [f["name"] for f in made.schema["fields"]] == ["id", "more"]
    assert made.is_held
    assert shown(table_of(branched.catalog, "mart.t")) == shown(before)
    branched.catalog.commit([BranchCommit(identifier=before.identifier, branch=PR, to="publish")])
    main = table_of(branched.catalog, "mart.t")
    assert [f["name"] for f in main.schema["fields"]] == ["id", "more"]
    assert (main.current_snapshot_id, main.is_held) == (head, False)


def test_a_new_version_of_a_view(branched: World) -> None:
    branched.catalog.commit([view_commit("mart.v")])
    before = view_of(branched.catalog, "mart.v")
    lens = branched.catalog.on_branch(PR)
    change = replace(
        view_commit("mart.v"),
        expect_metadata_location=view_of(lens, "mart.v").metadata_location,
        version_id=2,
        representations={"spark": "SELECT 2 AS id"},
    )
    lens.commit([change])
    main = view_of(branched.catalog, "mart.v")
    assert (main.version_id, main.representations, main.uuid) == (1, before.representations, before.uuid)
    assert (view_of(lens, "mart.v").version_id, view_of(lens, "mart.v").representations) == (2, {"spark": "SELECT 2 AS id"})
    branched.catalog.commit([BranchCommit(identifier=before.identifier, branch=PR, to="publish")])
    main = view_of(branched.catalog, "mart.v")
    assert (main.version_id, main.representations, main.uuid) == (2, {"spark": "SELECT 2 AS id"}, before.uuid)


def test_a_new_view_comes_when_it_is_published(branched: World) -> None:
    lens = branched.catalog.on_branch(PR)
    lens.commit([view_commit("mart.v")])
    assert branched.catalog.load([name("mart.v")]) == {}
    assert name("mart.v") not in branched.catalog.list_views()
    made = view_of(lens, "mart.v")
    branched.catalog.commit([BranchCommit(identifier=name("mart.v"), branch=PR, to="publish")])
    main = view_of(branched.catalog, "mart.v")
    assert (main.uuid, main.version_id, main.representations) == (made.uuid, made.version_id, made.representations)
    lens.commit([view_commit("mart.w")])
    branched.catalog.commit([BranchCommit(identifier=name("mart.w"), branch=PR, to="drop")])
    assert lens.load([name("mart.w")]) == {}


def test_a_branch_of_an_older_main_counts_as_none_and_is_not_published(branched: World) -> None:
    written(branched, "mart.t")
    built(branched, "mart.t")
    now = branched.write(name("mart.t"), {"id": [9]}, "main")
    seen = table_of(branched.catalog.on_branch(PR), "mart.t")
    assert (seen.current_snapshot_id, seen.properties["old"]) == (now.current_snapshot_id, "1")
    with pytest.raises(CommitConflict, match="since branch"):
        branched.catalog.commit([BranchCommit(identifier=name("mart.t"), branch=PR, to="publish")])
    again = built(branched, "mart.t")
    branched.catalog.commit([BranchCommit(identifier=name("mart.t"), branch=PR, to="publish")])
    assert table_of(branched.catalog, "mart.t").current_snapshot_id == again.current_snapshot_id


def test_nothing_is_dropped_or_renamed_on_a_branch(branched: World) -> None:
    state = written(branched, "mart.t")
    lens = branched.catalog.on_branch(PR)
    for change in (
        DropCommit(identifier=state.identifier, expect_metadata_location=state.metadata_location),
        table_commit(state, rename_to=name("mart.u")),
    ):
        with pytest.raises(CatalogError):
            lens.commit([change])
    assert branched.catalog.load([state.identifier]) == {state.identifier: state}


def test_the_record_of_main_moving_on_is_not_the_branchs(branched: World) -> None:
    branched.catalog.create_table(name("mart.t"), layout(id="long"), {"owner": "a"})
    state = branched.write(name("mart.t"), {"id": [1]}, "main")
    branched.catalog.commit([table_commit(state, set_properties={"iceberg.base.snapshot.u": "1"})])
    built(branched, "mart.t")
    main = table_of(branched.catalog, "mart.t")
    changed = {"iceberg.base.snapshot.u": "2", "mvbuild.more": "x", "owner": "b"}
    branched.catalog.commit([table_commit(main, set_properties=changed)])
    seen = table_of(branched.catalog.on_branch(PR), "mart.t").properties
    assert (seen["iceberg.base.snapshot.u"], seen.get("mvbuild.more"), seen["owner"]) == ("1", None, "b")


def test_a_branch_that_somebody_removed_counts_as_none(branched: World) -> None:
    written(branched, "mart.t")
    built(branched, "mart.t")
    main = table_of(branched.catalog, "mart.t")
    branched.catalog.commit([table_commit(main, drop_branches=(PR,))])
    seen = table_of(branched.catalog.on_branch(PR), "mart.t")
    assert (seen.current_snapshot_id, seen.properties["old"]) == (main.current_snapshot_id, "1")
    with pytest.raises(CommitConflict):
        branched.catalog.commit([BranchCommit(identifier=name("mart.t"), branch=PR, to="publish")])
