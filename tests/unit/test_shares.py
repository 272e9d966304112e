"""The shares of proofs: each proof is in one of them."""

from __future__ import annotations

import pytest

from shares import Share, dealt, parsed


def test_files_are_dealt_in_turns() -> None:
    assert list(dealt(["a", "a", "b", "c", "d", "a", "d", "e"], 3)) == [1, 1, 2, 3, 1, 1, 1, 2]


def test_one_share_has_all() -> None:
    assert set(dealt(["a", "b", "b"], 1)) == {1}


def test_a_share_is_a_number_of_a_count() -> None:
    assert parsed("2/8") == Share(2, 8)
    assert str(parsed("2/8")) == "2/8"


@pytest.mark.parametrize("text", ["0/8", "9/8", "-1/8"])
def test_a_share_that_does_not_exist_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="Use 1/8 to 8/8"):
        parsed(text)
