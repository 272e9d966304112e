// a node and its page -> what is shown of it: a head, tabs, and the chosen one.
"use strict";
{
  const TABS = {
    about: "About",
    sql: "SQL",
    lineage: "Column lineage",
    graph: "Graph",
    freshness: "Freshness",
    history: "History",
  };

  function tabsOf(page) {
    const has = { sql: page.written, freshness: page.next !== undefined || page.freshness, history: page.history };
    return Object.keys(TABS).filter((tab) => !(tab in { sql: 1, freshness: 1, history: 1 }) || has[tab]);
  }

  const links = (ats) => site.h("ul", { class: "links" }, ats.map((at) => {
    const node = site.nodes[at];
    return site.h("li", {}, site.h("a", { href: site.addressOf(node) }, node.name), " ", site.h("span", { class: "muted" }, site.kindOf(node)), " ", site.chip(node.state));
  }));

  function test(one) {
    const texts = { not_null: "never null", unique: "unique" };
    const all = Object.entries(one.arguments || {});
    const said = one.kind === "accepted_values" ? `one of: ${(one.arguments.values || "")}`
      : one.kind === "relationships" ? `exists in ${one.arguments.to}, column ${one.arguments.field}`
      : texts[one.kind] || one.name;
    const where = one.where ? ` where ${one.where}` : "";
    return site.h("span", { class: "chip plain", title: [one.name, ...all.map(([key, value]) => `${key}: ${value}`)].join("\n") }, `${said}${where}${one.severity === "warn" ? " (warns)" : ""}`);
  }

  function columns(node, page) {
    if (!page.columns.length) return site.h("p", { class: "note" }, "Its columns are not known.");
    const row = (column) => site.h("tr", {},
      site.h("th", { scope: "row" }, site.h("a", { href: site.addressOf(node, "lineage", column.name), title: "Where it comes from, and what is made of it" }, column.name)),
      site.h("td", {}, column.type ? site.h("code", {}, column.type) : ""),
      site.h("td", {}, site.prose(column.description), column.tests.length ? site.h("div", { class: "tests" }, column.tests.map(test)) : ""));
    return [
      site.h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Columns" }, site.h("table", { class: "columns" },
        site.h("thead", {}, site.h("tr", {}, ["Column", "Type", "Description and tests"].map((head) => site.h("th", { scope: "col" }, head)))),
        site.h("tbody", {}, page.columns.map(row)))),
      page.complete ? "" : site.h("p", { class: "note" }, "There may be more columns: not everything that it reads is known."),
    ];
  }

  function about(node, page) {
    const now = site.freshnessOf(node, page);
    const storage = page.stored;
    const section = (title, ...content) => site.h("section", {}, site.h("h3", {}, title), content);
    return [
      page.problem ? site.h("p", { class: "note bad" }, `It has an error${page.problem.at ? ` (${page.problem.at})` : ""}: ${page.problem.message}`) : "",
      page.description ? site.h("div", { class: "prose" }, site.prose(page.description)) : site.h("p", { class: "muted" }, "It has no description."),
      now ? site.h("p", {}, site.chip(now.state), " ", now.refreshed ? ["refreshed ", site.ago(now.refreshed)] : "never refreshed", node.why ? `: ${node.why}` : "", ". ",
        site.h("a", { href: site.addressOf(node, "freshness") }, "Why, and what comes next")) : "",
      page.freshness === undefined && site.classOf(node) === "mv" ? site.h("p", { class: "note" }, site.whyMissing()) : "",
      site.facts([
        ["Kind", site.h("span", { title: site.KINDS[site.kindOf(node)][1] }, site.kindOf(node))],
        ["Name in the catalog", node.relation ? site.h("code", {}, node.relation) : null],
        ["Rows", storage && storage.rows !== null ? `${site.count(storage.rows)}${storage.bytes !== null ? `, ${site.size(storage.bytes)}` : ""}` : null],
        ["File", page.files.length ? page.files.map((file, i) => [i ? ", " : "", site.h("code", {}, file)]) : null],
        ["Tags", node.tags.length ? node.tags.map((tag) => [site.h("a", { href: `#/list?tag=${encodeURIComponent(tag)}`, class: "chip plain" }, tag), " "]) : null],
        ...Object.entries(page.settings).map(([name, value]) => [name, site.h("code", {}, value)]),
      ]),
      section(`Columns (${page.columns.length})`, columns(node, page)),
      page.tests.length ? section("Tests of its rows", site.h("ul", {}, page.tests.map((one) => site.h("li", {}, one.name, one.severity === "warn" ? " (warns)" : "",
        one.column ? site.h("span", { class: "muted" }, ` a test of ${one.kind} elsewhere that reads it`) : "",
        one.sql ? site.h("details", {}, site.h("summary", {}, one.file), site.code([one.sql], one.name)) : "")))) : "",
      site.h("div", { class: "two" },
        node.reads.length ? section(`Reads (${node.reads.length})`, links(node.reads)) : "",
        section(`Read by (${node.readers.length})`, node.readers.length ? links(node.readers) : site.h("p", { class: "muted" }, "Nothing in this project reads it."))),
      storage ? section("In the catalog", site.stored(storage)) : "",
    ];
  }

  function sql(page) {
    const holder = site.h("div", {});
    const show = (which) => holder.replaceChildren(
      site.h("div", { class: "controls", role: "group", "aria-label": "Which SQL" },
        ["compiled", "written"].map((one) => site.h("button", { type: "button", "aria-pressed": String(one === which), onclick: () => show(one) }, one === "compiled" ? "As compiled" : "As written")),
        navigator.clipboard ? site.h("button", { type: "button", class: "copy", onclick: (event) => {
          const button = event.target;
          navigator.clipboard.writeText(page[which].map((piece) => (typeof piece === "string" ? piece : piece[0])).join("")).then(() => (button.textContent = "Copied"), () => {});
        } }, "Copy") : ""),
      page[which].length ? site.code(page[which], which === "compiled" ? "SQL as compiled" : "SQL as written") : site.h("p", { class: "note" }, "It could not be compiled."));
    show("compiled");
    return holder;
  }

  function freshness(node, page) {
    const section = (title, ...content) => site.h("section", {}, site.h("h3", {}, title), content);
    const next = site.nextRefresh(page);
    return [
      section("Now", site.freshness(node, page)),
      next ? section("Next run", next) : "",
      section("Record of its last refresh", site.record(page.record)),
      page.stored ? section("Storage", site.stored(page.stored)) : "",
    ];
  }

  site.nodePage = async (node, tab, rest) => {
    const page = await site.load(node.at);
    const tabs = tabsOf(page);
    if (!tabs.includes(tab)) tab = "about";
    const content = {
      about: () => about(node, page),
      sql: () => sql(page),
      lineage: () => site.lineage(node, page, rest[0] ?? null),
      graph: () => site.neighbourhood(node),
      freshness: () => freshness(node, page),
      history: () => site.history(page),
    };
    const body = await content[tab]();
    return [
      site.h("div", { class: "head" },
        site.h("p", { class: "path" }, node.folder ? site.h("a", { href: `#/list?folder=${encodeURIComponent(node.folder)}` }, node.folder) : ""),
        site.h("h2", {}, site.h("span", { class: `dot ${site.classOf(node)}`, "aria-hidden": "true" }), node.name, " ", site.chip(node.state)),
        site.h("nav", { class: "tabs", "aria-label": "About this node" }, tabs.map((one) =>
          site.h("a", { href: one === "about" ? site.addressOf(node) : site.addressOf(node, one), "aria-current": one === tab ? "page" : null }, TABS[one])))),
      ["about", "freshness", "history"].includes(tab) ? site.outdated(node, page) : "",
      site.h("div", { class: `tab ${tab}` }, body),
    ];
  };
}
