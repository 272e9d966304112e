// the columns of a node -> a picture of where they come from and what is made of them; every column in it leads on.
"use strict";
{
  const ROW = 22;
  const HEAD = 30;
  const MOST_BOXES = 60;
  const MOST_ROWS = 40; // of one box, unless all are asked for

  const keyOf = (at, column) => `${at}\n${column.toLowerCase()}`;

  // Number of a node -> Map of its columns that are shown, and the edges between columns.
  class Picture {
    constructor() {
      this.boxes = new Map();
      this.edges = new Map();
      this.left = 0;
    }
    add(at, column) {
      if (!this.boxes.has(at)) {
        if (this.boxes.size >= MOST_BOXES) {
          this.left += 1;
          return false;
        }
        this.boxes.set(at, new Map());
      }
      if (column !== null) this.boxes.get(at).set(column.toLowerCase(), column);
      return true;
    }
    connect(fromAt, fromColumn, toAt, toColumn) {
      const [from, to] = [keyOf(fromAt, fromColumn), keyOf(toAt, toColumn)];
      this.edges.set(`${from}\n${to}`, { from, to, fromAt, toAt });
    }
  }

  const columnOf = (page, name) => page.columns.find((column) => column.name.toLowerCase() === name.toLowerCase());

  // Every column, and one step to each side.
  function around(node, page, all) {
    const picture = new Picture();
    picture.add(node.at, null);
    const shown = all ? page.columns : page.columns.slice(0, MOST_ROWS);
    for (const column of shown) {
      picture.add(node.at, column.name);
      for (const [at, name] of column.from) if (picture.add(at, name)) picture.connect(at, name, node.at, column.name);
      for (const [at, name] of column.to) if (picture.add(at, name)) picture.connect(node.at, column.name, at, name);
    }
    return picture;
  }

  // One column: everything that it comes from, and everything that is made of it.
  async function through(node, name) {
    const picture = new Picture();
    picture.add(node.at, name);
    const decided = new Set();
    for (const direction of ["from", "to"]) {
      const seen = new Set([keyOf(node.at, name)]);
      let edge = [[node.at, name]];
      while (edge.length) {
        const pages = await Promise.all(edge.map(([at]) => site.load(at)));
        const next = [];
        edge.forEach(([at, column], i) => {
          const found = columnOf(pages[i], column);
          if (!found) return;
          if (direction === "to") for (const one of found.decides) decided.add(one);
          for (const [other, otherColumn] of found[direction]) {
            if (!picture.add(other, otherColumn)) continue;
            if (direction === "from") picture.connect(other, otherColumn, at, column);
            else picture.connect(at, column, other, otherColumn);
            if (seen.has(keyOf(other, otherColumn))) continue;
            seen.add(keyOf(other, otherColumn));
            next.push([other, otherColumn]);
          }
        });
        edge = next;
      }
    }
    return { picture, decided };
  }

  function draw(picture, node, chosen) {
    const types = "12px system-ui, sans-serif";
    const boxes = [...picture.boxes].map(([at, columns]) => {
      const names = [...columns.values()];
      const title = site.shortened(site.nodes[at].name, 32);
      const widest = Math.max(site.widthOf(title, "600 13px system-ui, sans-serif"), ...names.map((one) => site.widthOf(site.shortened(one, 36), types)));
      return { key: String(at), at, title, names, width: Math.ceil(widest + 30), height: HEAD + Math.max(1, names.length) * ROW + 6 };
    });
    const links = new Map([...picture.edges.values()].map((edge) => [`${edge.fromAt} ${edge.toAt}`, [String(edge.fromAt), String(edge.toAt)]]));
    const laid = site.layered(boxes, [...links.values()].filter(([a, b]) => a !== b), [], { ranksep: 90, nodesep: 20 });
    const places = new Map();
    for (const box of boxes) {
      const place = laid.places.get(box.key);
      box.names.forEach((name, i) => places.set(keyOf(box.at, name), { left: place.x, right: place.x + place.width, y: place.y + HEAD + i * ROW + ROW / 2 }));
    }
    const edges = [...picture.edges.values()].map((edge) => {
      const [from, to] = [places.get(edge.from), places.get(edge.to)];
      return site.s("path", { class: "edge", "data-from": edge.from, "data-to": edge.to, d: site.curve([{ x: from.right, y: from.y }, { x: to.left, y: to.y }]) });
    });
    const drawn = boxes.map((box) => {
      const place = laid.places.get(box.key);
      const one = site.nodes[box.at];
      return site.s("g", { class: `table ${site.classOf(one)}${one === node ? " current" : ""}`, transform: `translate(${place.x} ${place.y})` },
        site.s("rect", { width: place.width, height: place.height, rx: 6 }),
        site.s("a", { href: site.addressOf(one, "lineage"), class: "head" },
          site.s("title", {}, [one.relation || one.name, site.kindOf(one)].join("\n")),
          site.s("path", { class: "bar", d: `M6 0 h${place.width - 12} a6 6 0 0 1 6 6 v${HEAD - 8} h${-place.width} v${8 - HEAD} a6 6 0 0 1 6 -6 z` }),
          site.s("text", { x: 12, y: 19, class: "name" }, box.title)),
        box.names.map((name, i) => {
          const key = keyOf(box.at, name);
          const isChosen = one === node && chosen !== null && name.toLowerCase() === chosen.toLowerCase();
          return site.s("a", { href: site.addressOf(one, "lineage", name), class: `column${isChosen ? " chosen" : ""}`, "data-key": key, "aria-current": isChosen ? "true" : null },
            site.s("title", {}, `${one.name}.${name}`),
            site.s("rect", { x: 1, y: HEAD + i * ROW, width: place.width - 2, height: ROW }),
            site.s("text", { x: 12, y: HEAD + i * ROW + 15 }, site.shortened(name, 36)));
        }));
    });
    const start = laid.places.get(String(node.at));
    const frame = site.frame(`Column lineage of ${node.name}`, laid.width, laid.height, [edges, drawn], start);
    follow(frame.querySelector("svg"), picture);
    return frame;
  }

  // What one points at is emphasised, with all that it comes from and all that is made of it.
  function follow(svg, picture) {
    const next = { from: new Map(), to: new Map() };
    for (const edge of picture.edges.values()) {
      (next.from.get(edge.to) || next.from.set(edge.to, []).get(edge.to)).push(edge.from);
      (next.to.get(edge.from) || next.to.set(edge.from, []).get(edge.from)).push(edge.to);
    }
    const reach = (key, map) => {
      const seen = new Set([key]);
      for (const one of seen) for (const other of map.get(one) || []) seen.add(other);
      return seen;
    };
    const mark = (event) => {
      const column = event.type === "mouseout" ? null : event.target.closest("[data-key]");
      const near = column ? new Set([...reach(column.dataset.key, next.from), ...reach(column.dataset.key, next.to)]) : new Set();
      for (const one of svg.querySelectorAll(".column")) one.classList.toggle("near", near.has(one.dataset.key));
      for (const edge of svg.querySelectorAll(".edge")) edge.classList.toggle("near", near.has(edge.dataset.from) && near.has(edge.dataset.to));
    };
    for (const name of ["mouseover", "mouseout", "focusin"]) svg.addEventListener(name, mark);
  }

  const linkTo = (at, column) => site.h("a", { href: site.addressOf(site.nodes[at], "lineage", ...(column ? [column] : [])) }, column ? `${site.nodes[at].name}.${column}` : site.nodes[at].name);
  const listed = (links) => links.flatMap((link, i) => (i ? [", ", link] : [link]));

  site.lineage = async (node, page, chosen) => {
    if (!page.columns.length) {
      return site.h("p", { class: "note" }, "Its columns are not known. Run `mvbuild lock`, or build this site where the catalog can be read.");
    }
    if (chosen !== null) {
      const column = columnOf(page, chosen);
      if (!column) return site.h("p", { class: "note" }, `${node.name} has no column ${chosen}.`);
      const { picture, decided } = await through(node, column.name);
      return site.h("div", {},
        site.h("p", {}, site.h("strong", {}, column.name), column.type ? [" ", site.h("code", {}, column.type)] : "", column.description ? ` ${column.description}` : "", " ",
          site.h("a", { href: site.addressOf(node, "lineage") }, "Show all columns")),
        picture.boxes.size === 1 ? site.h("p", { class: "note" }, "It comes from no other column, and no other column is made of it.") : "",
        picture.left ? site.h("p", { class: "note" }, "There are more tables than one picture can show: follow a column to see further.") : "",
        draw(picture, node, column.name),
        column.unsure ? site.h("p", { class: "note" }, "It may also come from other columns: not every name in the query could be resolved.") : "",
        decided.size ? site.h("p", {}, "It decides which rows there are in: ", listed([...decided].sort((a, b) => a - b).map((at) => linkTo(at))), ".") : "");
    }
    const holder = site.h("div", {});
    const show = (all) => {
      const picture = around(node, page, all);
      const hidden = page.columns.length - (all ? page.columns.length : Math.min(MOST_ROWS, page.columns.length));
      holder.replaceChildren(
        site.h("p", {}, "One step to each side. Choose a column to see everything that it comes from and everything that is made of it."),
        hidden ? site.h("p", { class: "note" }, `${site.plural(hidden, "column")} not shown. `, site.h("button", { type: "button", onclick: () => show(true) }, "Show all")) : "",
        picture.left ? site.h("p", { class: "note" }, "There are more tables than one picture can show: choose a column to see all of its own.") : "",
        draw(picture, node, null),
        page.rows.length ? site.h("p", {}, "Which rows there are is decided by: ", listed(page.rows.map(([at, column]) => linkTo(at, column))), ".") : "",
        page.complete ? "" : site.h("p", { class: "note" }, "There may be more columns: not everything that it reads is known."));
    };
    show(false);
    return holder;
  };
}
