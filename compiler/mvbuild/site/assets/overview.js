// site.nodes -> the front page; a list of nodes with filters.
"use strict";
{
  const MOST = 200;

  function counted(nodes, key) {
    const found = new Map();
    for (const node of nodes) {
      const value = key(node);
      if (value) found.set(value, (found.get(value) || 0) + 1);
    }
    return found;
  }

  function freshnessBar(mvs) {
    const found = counted(mvs, (node) => node.state);
    const states = Object.keys(site.STATES).filter((state) => found.get(state));
    if (!states.length) return site.h("p", { class: "note" }, site.whyMissing());
    return [
      site.h("div", { class: "share", "aria-hidden": "true" }, states.map((state) => site.h("span", { class: state, style: `flex-grow:${found.get(state)}` }))),
      site.h("p", {}, states.map((state) => [site.h("a", { href: `#/list?state=${state}`, class: "plainlink" }, site.chip(state), ` ${site.count(found.get(state))}`), "  "]),
        site.h("span", { class: "muted" }, site.liveNow && !site.liveNow.error ? "checked " : "when this site was built, ", site.ago(site.asOf()))),
    ];
  }

  site.overview = () => {
    const project = site.project;
    const mvs = site.nodes.filter((node) => site.classOf(node) === "mv");
    const kinds = counted(site.nodes, site.kindOf);
    const late = mvs.filter((node) => node.state && node.state !== "fresh");
    const actions = counted(site.nodes, (node) => (node.action === "reuse" ? null : node.action));
    const wrong = site.nodes.filter((node) => node.problem);
    const tile = (number, word, href) => site.h("a", { class: "tile", href }, site.h("b", {}, site.count(number)), ` ${word}${number === 1 || word.startsWith("view of") ? "" : "s"}`);
    const section = (title, ...content) => site.h("section", {}, site.h("h3", {}, title), content);
    return [
      site.h("h2", {}, project.project),
      site.h("p", { class: "muted" }, `Target ${project.target}, catalog ${project.catalog}${project.branch ? `, branch ${project.branch}` : ""}. Built `, site.ago(project.at), ` by mvbuild ${project.mvbuild}.`),
      wrong.length ? site.h("p", { class: "note bad" }, `${site.plural(wrong.length, "model")} cannot be built: `, wrong.slice(0, 5).map((node) => [site.h("a", { href: site.addressOf(node) }, node.name), " "])) : "",
      site.h("div", { class: "tiles" },
        [...kinds].map(([kind, number]) => tile(number, kind, `#/list?kind=${encodeURIComponent(kind)}`)),
        site.h("span", { class: "tile" }, site.h("b", {}, site.count(project.tests)), ` data test${project.tests === 1 ? "" : "s"}`)),
      mvs.length ? section("Are the materialized views right?", freshnessBar(mvs),
        project.unplanned ? site.h("p", { class: "note" }, `A run cannot be planned: ${project.unplanned}`) : "",
        actions.size && !site.liveAddress ? site.h("p", {}, "A run would now ", [...actions].map(([action, number], i) => `${i ? ", " : ""}${site.ACTIONS[action][0]} ${site.count(number)}`), ".") : "",
        late.length ? site.h("ul", { class: "links" }, late.slice(0, 12).map((node) => site.h("li", {}, site.h("a", { href: site.addressOf(node, "freshness") }, node.name), " ", site.chip(node.state), node.why ? ` ${node.why}` : ""))) : "",
        late.length > 12 ? site.h("p", {}, site.h("a", { href: "#/list?state=stale" }, `${site.count(late.length - 12)} more`)) : "") : "",
      section("How it fits together", site.folderGraph()),
      site.h("details", { class: "glossary" }, site.h("summary", {}, "What the words mean"),
        site.h("dl", {}, site.GLOSSARY.map(([word, meaning]) => [site.h("dt", {}, word), site.h("dd", {}, meaning)]))),
    ];
  };

  const FILTERS = {
    kind: (node, value) => site.kindOf(node) === value,
    state: (node, value) => node.state === value,
    folder: (node, value) => node.folder === value || node.folder.startsWith(`${value}/`),
    tag: (node, value) => node.tags.includes(value),
  };

  site.list = (query) => {
    const chosen = new URLSearchParams(query);
    const values = {
      kind: [...new Set(site.nodes.map(site.kindOf))],
      state: Object.keys(site.STATES),
      folder: [...new Set(site.nodes.map((node) => node.folder))].filter(Boolean).sort(),
      tag: [...new Set(site.nodes.flatMap((node) => node.tags))].sort(),
    };
    const to = (name, value) => {
      const next = new URLSearchParams(chosen);
      if (value) next.set(name, value);
      else next.delete(name);
      location.hash = `#/list${next.size ? `?${next}` : ""}`;
    };
    const select = (name) => {
      const own = chosen.get(name) || "";
      const options = values[name].includes(own) || !own ? values[name] : [own, ...values[name]];
      return options.length ? site.h("label", {}, `${name} `, site.h("select", { "data-filter": name, onchange: (event) => to(name, event.target.value) },
        site.h("option", { value: "" }, "any"), options.map((value) => site.h("option", { value, selected: value === own }, value)))) : "";
    };
    const found = site.nodes.filter((node) => Object.keys(FILTERS).every((name) => !chosen.get(name) || FILTERS[name](node, chosen.get(name))));
    found.sort((a, b) => site.byName(a.name, b.name));
    const body = site.h("tbody", {});
    const more = site.h("button", { type: "button", onclick: () => add() }, "Show more");
    const add = () => {
      const from = body.children.length;
      body.append(...found.slice(from, from + MOST).map((node) => site.h("tr", {},
        site.h("th", { scope: "row" }, site.h("span", { class: `dot ${site.classOf(node)}`, "aria-hidden": "true" }), site.h("a", { href: site.addressOf(node) }, node.name)),
        site.h("td", {}, site.kindOf(node)),
        site.h("td", {}, site.chip(node.state), node.refreshed ? [" ", site.ago(node.refreshed)] : ""),
        site.h("td", {}, node.short))));
      more.hidden = body.children.length >= found.length;
    };
    add();
    return [
      site.h("h2", {}, "All tables and models"),
      site.h("div", { class: "controls" }, Object.keys(FILTERS).map(select)),
      site.h("p", { class: "muted" }, `${site.count(found.length)} of ${site.count(site.nodes.length)}`),
      site.h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Nodes" }, site.h("table", { class: "list" },
        site.h("thead", {}, site.h("tr", {}, ["Name", "Kind", "Freshness", "Description"].map((head) => site.h("th", { scope: "col" }, head)))), body)),
      more,
    ];
  };

  // The folders of the project as a tree that is opened level by level.
  site.sidebar = () => {
    const level = (folder) => [
      [...folder.folders.values()].map((inner) => {
        const content = site.h("div", {});
        return site.h("details", { "data-path": inner.path, ontoggle: (event) => event.target.open && !content.children.length && content.append(...level(inner).flat(Infinity)) },
          site.h("summary", {}, inner.path.split("/").pop(), " ", site.h("span", { class: "muted" }, site.count(inner.total))), content);
      }),
      folder.nodes.slice(0, MOST).map((node) => site.h("a", { href: site.addressOf(node), "data-at": node.at }, site.h("span", { class: `dot ${site.classOf(node)}`, "aria-hidden": "true" }), node.name)),
      folder.nodes.length > MOST ? site.h("a", { href: `#/list?folder=${encodeURIComponent(folder.path)}` }, `${site.count(folder.nodes.length - MOST)} more`) : [],
    ];
    return level(site.folders());
  };
}
