// what the catalog said of a node -> freshness with every reason, what the next run does, the record, the storage.
"use strict";
{
  const facts = (pairs) =>
    site.h("dl", { class: "facts" }, pairs.filter(([, value]) => value !== null && value !== undefined && value !== "").map(([name, value]) =>
      site.h("div", {}, site.h("dt", {}, name), site.h("dd", {}, value))));
  site.facts = facts;

  site.freshness = (node, page) => {
    const now = site.freshnessOf(node, page);
    if (!now) return site.h("p", { class: "note" }, missing());
    const reasons = now.reasons.map((reason) =>
      site.h("li", { class: reason.effect }, site.h("span", { class: "reason" }, reason.text), " ", site.h("code", {}, reason.code),
        reason.unseen ? [", unseen for ", site.span(site.asOf() - reason.unseen)] : "",
        reason.effect === "fresh" ? site.h("span", { class: "muted" }, " (does not make it stale)") : ""));
    return site.h("div", {},
      site.h("p", {}, site.chip(now.state), " ", site.STATES[now.state][2]),
      site.h("p", {}, now.refreshed ? ["Its last refresh began ", site.ago(now.refreshed), "."] : "It has no record of a refresh.",
        " ", site.h("span", { class: "muted" }, site.liveNow && !site.liveNow.error ? "Checked " : "Checked when this site was built, ", site.ago(site.asOf()), ".")),
      reasons.length ? site.h("ul", { class: "reasons" }, reasons) : "",
      now.failed ? site.h("p", { class: "note bad" }, `Its newest data failed its tests${now.failed.at ? ` at ${site.utc(now.failed.at)}` : ""}: ${now.failed.tests.join("; ") || "it is not recorded which"}. The rows of its last good refresh stay.`) : "");
  };

  const missing = () => (site.project.unseen ? `Freshness and history are missing: ${lower(site.project.unseen)}.` : "The catalog says nothing of it.");
  const lower = (text) => text.replace(/\.$/, "").replace(/^[A-Z](?=[a-z])/, (letter) => letter.toLowerCase());
  site.whyMissing = missing;

  function verdicts(found) {
    return site.h("ul", { class: "verdicts" }, found.map((one) =>
      site.h("li", { class: one.possible ? "yes" : "no" },
        site.h("span", { class: "mark", "aria-label": one.possible ? "possible" : "not possible" }, one.possible ? "✓" : "✗"), " ",
        site.h("strong", { title: site.STRATEGIES[one.strategy] }, one.strategy), one.chosen ? " (chosen)" : "", one.keys.length ? ` by ${one.keys.join(", ")}` : "",
        one.bytes !== null ? `, ${site.size(one.bytes)}` : "",
        one.message ? [": ", one.message, ". "] : "", one.help && !one.help.startsWith("Nothing") ? site.h("span", { class: "muted" }, one.help) : "")));
  }

  // Only freshness is live: what was read when the site was built may be older than that.
  site.outdated = (node, page) => {
    const now = site.freshnessOf(node, page);
    if (!now || !page.freshness || (now.refreshed === page.freshness.refreshed && now.state === page.freshness.state)) return "";
    return site.h("p", { class: "note" }, "It has changed since this site was built. Except for its freshness, this page shows what was read ", site.ago(site.project.at), ": build the site again to see the rest.");
  };

  site.nextRefresh = (page) => {
    const next = page.next;
    if (!next) return site.project.unplanned ? site.h("p", { class: "note" }, `A run cannot be planned: ${lower(site.project.unplanned)}.`) : null;
    const cost = next.expected && next.full
      ? `It is expected to read and write ${site.size(next.expected[0])} and ${site.plural(next.expected[1], "row")}` +
        (next.strategy && next.strategy !== "full" ? `; a full refresh would be ${site.size(next.full[0])}.` : ".")
      : null;
    const depends = next.action === "refresh" && next.strategy === null ? " How depends on what it reads, which is refreshed first." : "";
    return site.h("div", {},
      site.h("p", {}, site.ACTIONS[next.action][1], depends, next.strategy ? [" Strategy: ", site.h("strong", { title: site.STRATEGIES[next.strategy] }, next.strategy), next.code ? [", because ", next.message, " ", site.h("code", {}, next.code)] : "", "."] : "", cost ? ` ${cost}` : ""),
      next.error ? site.h("p", { class: "note bad" }, next.error) : "",
      next.changes && next.changes.some(([, what]) => what !== "nothing")
        ? site.h("ul", {}, next.changes.map(([name, what]) => site.h("li", {}, site.h("code", {}, name), `: ${site.CHANGES[what]}`))) : "",
      next.verdicts && next.verdicts.length ? [site.h("h4", {}, "Strategies for what has changed"), verdicts(next.verdicts)] : "",
      next.brief ? site.h("p", { class: "muted" }, "`mvbuild explain` shows how it follows other changes; a site of this size leaves that out.") : "",
      next.unknown ? site.h("p", { class: "note" }, `How it follows changes is unknown: ${next.unknown}.`) : "",
      Object.entries(next.supposed || {}).map(([change, found]) => {
        const able = found.filter((one) => one.possible).map((one) => one.strategy);
        const title = change === "inserts" ? "If rows are only added to what it reads" : "If rows are updated or deleted as well";
        return site.h("details", {}, site.h("summary", {}, `${title}: ${able.length ? able.join(", ") : "full refresh"}`), verdicts(found));
      }),
      next.operators && next.operators.length
        ? site.h("details", {}, site.h("summary", {}, "The query as mvbuild understands it"),
            site.h("pre", { tabindex: "0" }, next.operators.map(([depth, text]) => `${"  ".repeat(depth)}${text}\n`).join(""))) : "");
  };

  // A table of the record by its name, which leads to its page if it has one.
  const named = (name) => {
    const node = site.byRelation(`${site.project.catalog}.${name}`);
    return node ? site.h("a", { href: site.addressOf(node) }, name) : name;
  };

  site.record = (record) => {
    if (!record) return site.h("p", { class: "note" }, "There is no record of a refresh in the catalog.");
    const cell = (text) => site.h("td", {}, text === null ? "" : text);
    const code = (text) => (text === null ? "" : site.h("code", {}, text));
    const table = (label, heads, rows) => site.h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": label }, site.h("table", {},
      site.h("thead", {}, site.h("tr", {}, heads.map((head) => site.h("th", { scope: "col" }, head)))), site.h("tbody", {}, rows)));
    return site.h("div", {},
      facts([["Refresh began", record.started ? site.utc(record.started) : null], ["Version of the view", record.view_version]]),
      table("Tables that were read", ["Table", "Snapshot", "Branch or tag", "Type", "UUID"], record.tables.map((one) =>
        site.h("tr", {}, cell(named(one.name)), cell(one.snapshot ? code(one.snapshot) : "none: the table was empty"), cell(one.ref || "main"), cell(one.type), cell(code(one.uuid))))),
      record.views.length ? table("Views that were read", ["View", "Version", "UUID"], record.views.map((one) =>
        site.h("tr", {}, cell(named(one.name)), cell(String(one.version)), cell(code(one.uuid))))) : "");
  };

  site.stored = (stored) => facts([
    ["Table", site.h("code", {}, stored.table)],
    ["Rows", stored.rows === null ? null : site.count(stored.rows)],
    ["Size", stored.bytes === null ? null : site.size(stored.bytes)],
    ["Current snapshot", stored.snapshot ? [site.h("code", {}, stored.snapshot), stored.at ? [" made ", site.ago(stored.at)] : ""] : "none"],
    ["Partitioned by", stored.partition_by.join(", ")],
    ["Sorted by", stored.sort_by.join(", ")],
    ["Format", stored.type === "iceberg-metastore" ? `Iceberg, version ${stored.format}` : stored.type],
    ["Location", site.h("code", {}, stored.location)],
    ["Metadata file", site.h("code", {}, stored.metadata)],
    ["UUID", site.h("code", {}, stored.uuid)],
  ]);
}
