// data/*.js -> site.project, site.nodes and the pages of nodes. A page opened from disk cannot read files, but it can load scripts.
"use strict";
{
  const pages = new Map();
  const waiting = new Map();
  const byId = new Map();
  let columns = null;

  site.nodes = [];
  site.liveAddress = null;
  site.liveNow = null;

  site.index = (content) => {
    site.project = content;
    site.nodes = content.nodes.map((row, at) => {
      const node = { at, readers: [] };
      content.fields.forEach((field, i) => (node[field] = row[i]));
      node.folder = content.folders[node.folder];
      return node;
    });
    for (const node of site.nodes) {
      byId.set(node.id, node);
      for (const read of node.reads) site.nodes[read].readers.push(node.at);
    }
  };
  site.page = (at, content) => pages.set(at, content);
  site.columns = (names) => (columns = names);
  site.live = (address) => (site.liveAddress = address);

  site.byId = (id) => byId.get(id);
  site.byRelation = (name) => site.nodes.find((node) => node.relation === name);

  function script(name) {
    if (!waiting.has(name)) {
      waiting.set(name, new Promise((done, failed) => {
        const element = site.h("script", { src: `data/${name}.js?${document.documentElement.dataset.stamp}` });
        element.onload = done;
        element.onerror = () => {
          waiting.delete(name);
          failed(new Error(`data/${name}.js is missing: build the site again`));
        };
        document.head.append(element);
      }));
    }
    return waiting.get(name);
  }

  // The page of a node, loaded once.
  site.load = async (at) => {
    if (!pages.has(at)) await script(at);
    return pages.get(at);
  };

  // The names of columns, for the search alone.
  site.loadColumns = async () => {
    if (!columns) await script("search");
    return columns;
  };

  // What is fresh now, where the site is served; `changed` is called after each answer.
  site.watch = (changed) => {
    if (!site.liveAddress) return;
    const ask = async () => {
      if (document.visibilityState !== "visible") return;
      try {
        const answer = await (await fetch(site.liveAddress)).json();
        site.liveNow = answer;
        for (const [id, found] of Object.entries(answer.nodes)) {
          const node = site.byId(id);
          if (!node) continue;
          node.state = found.state;
          node.refreshed = found.refreshed;
          const first = found.reasons.find((reason) => reason.effect !== "fresh");
          node.why = first ? first.text : null;
        }
      } catch {
        site.liveNow = { at: Date.now(), error: "mvbuild docs serve does not answer", nodes: {} };
      }
      changed();
    };
    ask();
    setInterval(ask, 10000);
    document.addEventListener("visibilitychange", ask);
  };

  // When what the page says of freshness was read.
  site.asOf = () => (site.liveNow && !site.liveNow.error ? site.liveNow.at : site.project.at);

  site.freshnessOf = (node, page) => (site.liveNow && site.liveNow.nodes[node.id]) || page.freshness;

  site.addressOf = (node, ...parts) => "#/" + ["node", node.id, ...parts].map(encodeURIComponent).join("/");
}
