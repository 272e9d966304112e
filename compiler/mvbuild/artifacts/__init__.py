"""Graph, RunResult -> the files of target/.

In: `Graph`, and a `RunResult` after a run. Out: compiled SQL, `manifest.json` and `run_results.json`, in the shapes of dbt's files
(docs/artifacts.md).

Read first: `manifest.py`, `run_results.py` and `compiled.py` (compiled SQL and fingerprints).
"""
