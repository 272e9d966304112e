"""Mutated projects -> a report of what mvbuild made of them, and the seed of each that it did not take as it should.

python tests/benchmarks/mutants.py --mutants 10000 --seed 0 --jobs 2
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2] / "compiler"))

from unit.hostile.bounded import Parent, Told
from unit.hostile.mutants import mutant
from unit.hostile.trial import tried


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutants", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--twice", type=int, default=10, help="each of so many is run again with other hashes, and the answers are compared"
    )
    asked = parser.parse_args()
    seeds = range(asked.seed, asked.seed + asked.mutants)
    parts = [seeds[i :: asked.jobs] for i in range(asked.jobs)]
    exits: Counter[int] = Counter()
    codes: Counter[str] = Counter()
    peak, seconds, wrong, total = 0, 0.0, 0, 0.0
    with ThreadPoolExecutor(asked.jobs) as pool:
        for found in pool.map(lambda part: list(_run(part, asked.twice)), parts):
            for complaint, told in found:
                exits[told.exit] += 1
                codes.update(_codes(told))
                peak, seconds, total = max(peak, told.peak), max(seconds, told.seconds), total + told.seconds
                wrong += bool(complaint)
    print(f"{asked.mutants:,} mutants from seed {asked.seed}: {wrong} not taken as they should be")
    print(f"exit codes: {', '.join(f'{code}: {n:,}' for code, n in sorted(exits.items()))}")
    print(f"most memory {peak / 1e6:.0f} MB; most CPU of one {seconds:.1f} s, of all {total:,.0f} s")
    print(f"codes: {', '.join(f'{code} {n:,}' for code, n in codes.most_common())}")
    sys.exit(wrong > 0)


def _run(seeds: range, twice: int) -> Iterator[tuple[str, Told]]:
    with tempfile.TemporaryDirectory() as folder, Parent(hash_seed=1) as first, Parent(hash_seed=2) as second:
        for n, seed in enumerate(seeds):
            one = mutant(seed)
            complaint, told = tried(one, (first, second) if seed % twice == 0 else (first,), Path(folder))
            if complaint:
                print(f"mutant({seed}), {', '.join(one.done)}: {complaint}", flush=True)
            if n % 50 == 49:
                print(f"... {n + 1} of {len(seeds)}", file=sys.stderr, flush=True)
            yield complaint, told


def _codes(told: Told) -> set[str]:
    return set(re.findall(r"^(?:error|warning|info)\[([^\]]*)\]: ", told.stderr + told.stdout, re.MULTILINE))


if __name__ == "__main__":
    main()
