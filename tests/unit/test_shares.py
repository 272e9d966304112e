"""The shares of proofs: each proof is in one of them."""

from __future__ import annotations

import pytest

from shares import Share, dealt, parsed


def test_files_are_dealt_in_turns() -> None:
    assert list(dealt(["a", "a", "b", "c", "d", "a", "d", "e"], 3)) == [1, 1, 2, 3, 1, 1, 1, 2]


def test_one_share_has_all() -> None:
    assert set(dealt(["a", "b", "b"], 1)) == {1}


def test_a_share_is_a_number_of_a_count() -> None:
    assert parsed("2/7") == Share(2, 7)
    assert str(parsed("2/7")) == "2/7"


@pytest.mark.parametrize("text", ["0/7", "8/7", "-1/7"])
def test_a_share_that_does_not_exist_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="Use 1/7 to 7/7"):
        parsed(text)
