// numbers, times, codes -> words for people who do not know mvbuild.
"use strict";
{
  const UNITS = ["B", "kB", "MB", "GB", "TB", "PB"];

  site.count = (number) => (number === null || number === undefined ? "" : number.toLocaleString("en"));

  site.plural = (number, word) => `${site.count(number)} ${word}${number === 1 ? "" : /(s|sh)$/.test(word) ? "es" : "s"}`;

  site.size = (bytes) => {
    let at = 0;
    while (bytes >= 999.5 && at < UNITS.length - 1) {
      bytes /= 1000;
      at += 1;
    }
    return `${bytes < 10 && at ? bytes.toFixed(1) : Math.round(bytes)} ${UNITS[at]}`;
  };

  site.seconds = (value) => {
    if (value < 60) return `${value < 10 ? value.toFixed(1) : Math.round(value)} s`;
    const minutes = Math.floor(value / 60);
    if (minutes < 60) return `${minutes} min ${Math.round(value % 60)} s`;
    const hours = Math.floor(minutes / 60);
    return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days`;
  };

  // A span of time in one unit: `5 minutes`.
  site.span = (ms) => {
    const steps = [[60e3, 1e3, "second"], [3600e3, 60e3, "minute"], [48 * 3600e3, 3600e3, "hour"], [Infinity, 24 * 3600e3, "day"]];
    const [, unit, word] = steps.find(([limit]) => ms < limit);
    return site.plural(Math.max(0, Math.round(ms / unit)), word);
  };

  site.utc = (ms) => new Date(ms).toISOString().replace("T", " ").slice(0, 16) + " UTC";

  // `5 minutes ago`, with the time itself when one points at it.
  site.ago = (ms) => site.h("time", { datetime: new Date(ms).toISOString(), title: site.utc(ms) }, `${site.span(Date.now() - ms)} ago`);

  site.STATES = {
    fresh: ["●", "fresh", "Its stored rows are what its query would return now."],
    stale: ["▲", "stale", "What it reads, or its own definition, has changed since its last refresh."],
    unknown: ["?", "unknown", "It cannot be shown that its stored rows are right. mvbuild never guesses."],
  };

  site.chip = (state) => {
    if (!state) return null;
    const [sign, word, meaning] = site.STATES[state];
    return site.h("span", { class: `chip ${state}`, title: meaning }, site.h("span", { "aria-hidden": "true" }, sign), ` ${word}`);
  };

  site.KINDS = {
    "materialized view": ["mv", "A query whose rows are stored, and refreshed when they are no longer right."],
    view: ["view", "A query without rows of its own: it is computed whenever it is read."],
    "ephemeral model": ["ephemeral", "SQL that is part of the models that read it. The catalog does not have it."],
    seed: ["seed", "A CSV file of the project, loaded as a table."],
    source: ["source", "A table that others write. The project only reads it."],
    table: ["source", "A table that others write. The project reads it by its name."],
    "view of the catalog": ["view", "A view that others made. The project only reads it."],
  };

  site.kindOf = (node) => site.project.kinds[node.kind];
  site.classOf = (node) => site.KINDS[site.kindOf(node)][0];

  site.ACTIONS = {
    load: ["load", "The next run loads the file."],
    create: ["create", "The next run creates the view."],
    replace: ["replace", "The next run gives the view its new definition."],
    refresh: ["refresh", "The next run refreshes it."],
    redefine: ["redefine", "The next run gives it its new text, and refreshes it unless the text is proven to mean the same."],
    record: ["update record", "The next run updates its record only: what it reads was written again with the same rows."],
    alter: ["alter", "The next run changes its settings in the catalog. No row is touched."],
    convert: ["convert", "The next run changes the format in which it is stored. No row is touched."],
    reuse: ["reuse", "The next run leaves it as it is."],
    blocked: ["blocked", "The next run cannot refresh it."],
  };

  site.STRATEGIES = {
    full: "Everything was computed, and all rows written.",
    "full-diff": "Everything was computed, but only the rows that differ were written.",
    append: "Only the new rows were computed, and added.",
    merge: "The change was computed, and merged into the stored rows.",
    "min-max": "The change was computed, and the stored min and max compared with it.",
    "affected-keys": "Only the groups that the change affects were computed again.",
    partitions: "Only the partitions that the change affects were computed again.",
    "top-k": "The first rows were found among the stored ones and those that changed.",
    bag: "The rows that went and the rows that came were computed, and exchanged.",
  };

  site.CHANGES = {
    changed: "rows changed",
    "not-relevant": "changed, but no row that matters here",
    compacted: "compacted: same rows",
    "same-rows": "newer snapshots, same rows",
    nothing: "nothing changed",
    unknown: "what changed is unknown",
  };

  site.GLOSSARY = [
    ["materialized view (MV)", site.KINDS["materialized view"][1]],
    ["fresh", site.STATES.fresh[2]],
    ["stale", site.STATES.stale[2] + " Readers get rows by the policy of the MV: by default its query is run for them."],
    ["unknown", site.STATES.unknown[2]],
    ["refresh", "Computing the rows of an MV again, or only those that a change affects, and publishing them in one step."],
    ["strategy", "How a refresh is done: full computes everything; the others are incremental and compute only what a change affects."],
    ["snapshot", "The state of an Iceberg table at one time. A refresh reads one snapshot of each table, and records which."],
    ["record", "What the last refresh has read. It is stored in the catalog together with the rows, and freshness is judged by it."],
    ["data test", "A rule about rows. New rows of an MV are published only if its tests pass."],
    ["lineage", "From which columns of which tables a column is computed."],
  ];
}
