"""Graph + Observed + Freshness -> Plan.

In: `World`, the selection, and what changed in each table. Out: `Plan`: an action for each node, in order, with its reasons.

Read first: `model.py` (the types), `build.py` (the stage), `question.py` (what the choice of a strategy depends on).

An action can be less than a refresh: alter, redefine, convert, or moving the record on. `alter.py` finds what differs from the
configuration, `renames.py` what was renamed, `removed.py` what removed models left in the catalog, `dependents.py` what reads it. Renames
come before all steps, and freshness is judged as if they were done. `explain.py` is what `mvbuild explain` shows, and `amount.py` what a
run reads, by which Spark is started.
"""
