"""What mvbuild's decorator makes behaves like what the standard one makes."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, field, fields, replace
from functools import cached_property
from threading import Barrier
from typing import Any

import pytest

from mvbuild.cache.lazy import Lazy
from mvbuild.dataclass import dataclass

DECORATORS = (dataclass, dataclasses.dataclass)


def kinds(decorator: Any) -> dict[str, Any]:
    """Classes of every kind that the compiler has."""

    @decorator(frozen=True, slots=True, kw_only=True)
    class Named:
        """A table."""

        name: str
        size: int = 0
        tags: list[str] = field(default_factory=list)
        note: str = field(default="", repr=False, compare=False)

        @property
        def double(self) -> int:
            return 2 * self.size

    @decorator(frozen=True, slots=True)
    class Pair:
        first: Any
        second: Any = None
        seen: list[Any] = field(init=False, repr=False, compare=False, default_factory=list)
        size: int = field(init=False, compare=False)

        def __post_init__(self) -> None:
            if self.first == "wrong":
                raise ValueError(self.first)
            self.seen.append(self.second)
            object.__setattr__(self, "size", 2)

    @decorator(frozen=True, slots=True)
    class Child(Pair):
        third: int = 3

    @decorator(frozen=True, slots=True, eq=False)
    class Same:
        name: str

    @decorator(frozen=True)
    class Open:
        name: str

        @cached_property
        def length(self) -> int:
            return len(self.name)

    @decorator(frozen=True)
    class Own:
        name: str

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own) and other.name.lower() == self.name.lower()

        def __hash__(self) -> int:
            return 7

        def __repr__(self) -> str:
            return "own"

    @decorator(frozen=True, slots=True)
    class OwnEqual:
        name: str

        def __eq__(self, other: object) -> bool:
            return isinstance(other, OwnEqual)

    @decorator(frozen=True, slots=True)
    class OwnState:
        name: str

        def __getstate__(self) -> list[str]:
            return ["kept"]

        def __setstate__(self, state: list[str]) -> None:
            object.__setattr__(self, "name", state[0])

    @decorator(frozen=True, slots=True, order=True)
    class Ordered:
        at: int

    @decorator
    class Changing:
        at: int = 1

    @decorator(frozen=True, slots=True)
    class Empty:
        pass

    made = (Named, Pair, Child, Same, Open, Own, OwnEqual, OwnState, Ordered, Changing, Empty)
    return {one.__name__: one for one in made}


def said(action: Any) -> str:
    """A result, or an error, as text in which the two sets of classes look the same."""
    try:
        return repr(action()).replace("kinds.<locals>.", "")
    except Exception as exc:  # noqa: BLE001
        return f"{type(exc).__name__}: {exc}".replace("kinds.<locals>.", "")


CASES = {
    "keywords": lambda k: k["Named"](name="a", size=2),
    "no positions": lambda k: k["Named"]("a"),
    "missing": lambda k: k["Named"](),
    "unknown": lambda k: k["Named"](name="a", other=1),
    "own list each": lambda k: k["Named"](name="a").tags is k["Named"](name="a").tags,
    "equal": lambda k: k["Named"](name="a", note="x") == k["Named"](name="a", note="y"),
    "not equal": lambda k: (k["Named"](name="a") == k["Named"](name="b"), k["Named"](name="a") != k["Named"](name="b")),
    "of another class": lambda k: (k["Pair"](1, 2) == (1, 2), k["Pair"](1, 3) == k["Child"](1, 3), k["Child"](1) == k["Child"](1, None, 3)),
    "unhashable field": lambda k: hash(k["Named"](name="a")),
    "in a set": lambda k: len({k["Pair"](1), k["Pair"](1, None), k["Pair"](2)}),
    "hash": lambda k: (hash(k["Pair"](1, 2)), hash(k["Empty"]())),
    "positions": lambda k: (k["Pair"](1), k["Child"](1, 2, 4), k["Empty"]()),
    "after init": lambda k: k["Pair"]("wrong"),
    "of a child": lambda k: k["Child"]("wrong"),
    "identity": lambda k: (k["Same"]("a") == k["Same"]("a"), len({k["Same"]("a"), k["Same"]("a")}), k["Same"]("a")),
    "set": lambda k: setattr(k["Pair"](1), "first", 2),
    "set another": lambda k: setattr(k["Open"]("a"), "other", 2),
    "delete": lambda k: delattr(k["Pair"](1), "first"),
    "replace": lambda k: (replace(k["Named"](name="a"), size=4), replace(k["Child"](1), third=4)),
    "replace unknown": lambda k: replace(k["Named"](name="a"), other=4),
    "cached": lambda k: [(one.length, one.length) for one in [k["Open"]("abc")]],
    "own methods": lambda k: (k["Own"]("A") == k["Own"]("a"), hash(k["Own"]("A")), k["Own"]("A")),
    "own equality": lambda k: (k["OwnEqual"]("a") == k["OwnEqual"]("b"), hash(k["OwnEqual"]("a")) == hash(k["OwnEqual"]("b"))),
    "own state": lambda k: copy.copy(k["OwnState"]("a")),
    "another attribute": lambda k: [(object.__setattr__(one, "x", 1), copy.copy(one).x) for one in [k["Open"]("a")]],
    "order": lambda k: sorted([k["Ordered"](2), k["Ordered"](1)]),
    "changing": lambda k: [(setattr(one, "at", 2), one) for one in [k["Changing"]()]],
    "changing is unhashable": lambda k: hash(k["Changing"]()),
    "copies": lambda k: (copy.copy(k["Pair"](1)), copy.deepcopy(k["Named"](name="a", tags=["x"])), copy.copy(k["Open"]("a"))),
    "as a dictionary": lambda k: (dataclasses.asdict(k["Named"](name="a")), dataclasses.astuple(k["Child"](1))),
    "fields": lambda k: [[(f.name, f.type, f.default, f.kw_only) for f in fields(one)] for one in k.values() if one is not k["Named"]],
    "matched": lambda k: [one.__match_args__ for one in k.values()],
    "slots": lambda k: [getattr(one, "__slots__", None) for one in k.values()],
    "documented": lambda k: k["Named"].__doc__,
    "a property": lambda k: k["Named"](name="a", size=4).double,
    "contains itself": lambda k: [one.first.append(one) or one for one in [k["Pair"]([])]],
}


@pytest.mark.parametrize("case", CASES)
def test_it_does_what_the_standard_one_does(case: str):
    found, expected = (said(lambda decorator=decorator: CASES[case](kinds(decorator))) for decorator in DECORATORS)
    assert found == expected


def test_what_it_cannot_do_is_refused():
    with pytest.raises(TypeError, match="no default for a field that is not a parameter"):

        @dataclass(frozen=True)
        class Partly:
            name: str = field(default="", init=False)

    with pytest.raises(TypeError, match="no default for a field that is not a parameter"):

        @dataclass(frozen=True)
        class Given:
            name: dataclasses.InitVar[str]

    with pytest.raises(TypeError, match="cannot inherit non-frozen dataclass from a frozen one"):

        @dataclass
        class Changing(Sent):
            more: str = ""


def test_the_first_method_may_be_any():
    for first in ("__repr__", "__eq__", "__hash__"):
        pair = kinds(dataclass)["Pair"]
        blank = pair.__new__(pair)
        object.__setattr__(blank, "first", 1)
        object.__setattr__(blank, "second", 2)
        object.__setattr__(blank, "size", 2)
        found = getattr(blank, first)(*([blank] if first == "__eq__" else []))
        assert found == getattr(pair(1, 2), first)(*([pair(1, 2)] if first == "__eq__" else []))


def test_a_method_is_compiled_once():
    pair = kinds(dataclass)["Pair"]
    pair(1)
    before = pair.__init__
    pair(2)
    assert pair.__init__ is before
    assert pair.__init__.__code__.co_varnames[:3] == ("self", "first", "second")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    name: str
    pair: tuple[int, ...] = ()


def test_objects_travel_between_processes():
    sent = Sent(name="a", pair=(1, 2))
    assert pickle.loads(pickle.dumps(sent)) == sent


def test_an_object_read_later_equals_its_like():
    class LazySent(Lazy, Sent):
        __slots__ = ("_later",)

    lazy = LazySent.of(lambda _: {"pair": (1,)}, {"name": "a"})
    assert (lazy.name, lazy.pair) == ("a", (1,))
    assert lazy == LazySent.of(lambda _: {"pair": (1,)}, {"name": "a"})
    with pytest.raises(FrozenInstanceError):
        lazy.name = "b"  # type: ignore[misc]


def test_threads_may_make_the_first_objects_at_once():
    for _ in range(20):
        pair, ready = kinds(dataclass)["Pair"], Barrier(4)

        def make(number: int, pair: Any = pair, ready: Barrier = ready) -> Any:
            ready.wait()
            return pair(number)

        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(make, range(4))) == [pair(number) for number in range(4)]
