"""The shares of proofs: each proof is in one of them."""

from __future__ import annotations

import pytest

from shares import Share, dealt, parsed


def test_tests_are_dealt_in_turns() -> None:
    assert list(dealt([None] * 7, 3)) == [1, 2, 3, 1, 2, 3, 1]


def test_those_of_one_group_are_together_and_count_as_one() -> None:
    assert list(dealt([None, "file", "file", None, "file", "other", None], 3)) == [1, 2, 2, 3, 2, 1, 2]


def test_one_share_has_all() -> None:
    assert set(dealt([None, "file", "file", None], 1)) == {1}


def test_a_share_is_a_number_of_a_count() -> None:
    assert parsed("2/5") == Share(2, 5)
    assert str(parsed("2/5")) == "2/5"


@pytest.mark.parametrize("text", ["0/5", "6/5", "-1/5"])
def test_a_share_that_does_not_exist_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="Use 1/5 to 5/5"):
        parsed(text)
