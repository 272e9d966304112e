"""key columns + seed + round -> SQL expressions of numbers that are random, and yet always the same for the same key."""

from __future__ import annotations

from dataclasses import dataclass

_GRAIN = 10**9


@dataclass(frozen=True, slots=True)
class Draw:
    """Draws of different names have nothing to do with each other."""

    seed: int
    round: int
    keys: tuple[str, ...]

    def below(self, number: int, name: str) -> str:
        return f"pmod(xxhash64({', '.join(self.keys)}, {self.seed}L, {self.round}L, '{name}'), {number}L)"

    def one_of(self, number: int, name: str) -> str:
        """An index of an array."""
        return f"CAST(1 + {self.below(number, name)} AS INT)"

    def cents(self, number: int, name: str, precision: int) -> str:
        """An amount of money below so many cents."""
        return f"CAST(CAST({self.below(number, name)} AS DECIMAL({precision}, 0)) / 100 AS DECIMAL({precision}, 2))"

    def happens(self, fraction: float, name: str) -> str:
        return f"{self.below(_GRAIN, name)} < {int(fraction * _GRAIN)}"

    def one_changed(self, values: dict[str, str]) -> str:
        """The SET clause that gives one of the columns its new value and leaves the others."""
        which = self.below(len(values), "which")
        return ", ".join(f"{name} = CASE WHEN {which} = {n} THEN {value} ELSE {name} END" for n, (name, value) in enumerate(values.items()))


def number(*parts: int) -> int:
    """A random number that Python draws."""
    mixed = 0
    for part in parts:
        mixed = (mixed * 6364136223846793005 + part + 1442695040888963407) % 2**64
    return mixed >> 20
