// site.nodes -> the graph: folders that fold, or the neighbourhood of a node.
"use strict";
{
  const MOST = 140; // boxes of one picture: more is slow to lay out and unreadable
  const MOST_OF_FOLDER = 60;
  const folded = new Map(); // folder -> whether it is open, as it was left
  const depths = { up: "2", down: "2" };

  function nodeBox(node, extra) {
    const box = site.boxOf(node.name, extra || site.kindOf(node), node.state);
    return { ...box, key: `n${node.at}`, node };
  }

  function drawNode(box, place, current) {
    const attributes = {
      href: site.addressOf(box.node),
      class: `box ${site.classOf(box.node)}${current ? " current" : ""}`,
      "data-key": box.key,
      "aria-current": current ? "true" : null,
    };
    const title = [box.node.relation || box.node.name, site.kindOf(box.node), box.node.state, box.node.short].filter(Boolean).join("\n");
    return site.drawBox(box, place, attributes, title);
  }

  function drawEdges(found) {
    return found.paths.map((path) => site.s("path", { class: "edge", d: path.d, "data-from": path.from, "data-to": path.to }));
  }

  // The edges of what one points at, or has focused, are emphasised.
  function emphasise(svg) {
    const mark = (event) => {
      const box = event.target.closest("[data-key]");
      for (const edge of svg.querySelectorAll(".edge")) {
        edge.classList.toggle("near", Boolean(box) && (edge.dataset.from === box.dataset.key || edge.dataset.to === box.dataset.key));
      }
    };
    for (const name of ["mouseover", "focusin", "mouseout"]) svg.addEventListener(name, mark);
  }

  // ---- the neighbourhood of a node ----

  function reached(start, key, depth) {
    const found = [];
    const seen = new Set([start.at]);
    let edge = [start.at];
    for (let level = 0; level < depth && edge.length; level += 1) {
      const next = [];
      for (const at of edge) {
        for (const other of site.nodes[at][key]) {
          if (seen.has(other)) continue;
          seen.add(other);
          next.push(other);
        }
      }
      found.push(...next);
      edge = next;
    }
    return found;
  }

  site.neighbourhood = (node) => {
    const holder = site.h("div", {});
    const draw = () => {
      const ups = reached(node, "reads", Number(depths.up));
      const downs = reached(node, "readers", Number(depths.down));
      const half = Math.floor(MOST / 2);
      const ups_ = ups.slice(0, Math.max(half, MOST - downs.length));
      const chosen = new Set([node.at, ...ups_, ...downs.slice(0, MOST - ups_.length)]);
      const left = ups.length + downs.length + 1 - chosen.size;
      const boxes = [...chosen].sort((a, b) => a - b).map((at) => nodeBox(site.nodes[at]));
      const edges = [...chosen].flatMap((at) => site.nodes[at].reads.filter((r) => chosen.has(r)).map((r) => [`n${r}`, `n${at}`]));
      const found = site.layered(boxes, edges);
      const content = [drawEdges(found), boxes.map((box) => drawNode(box, found.places.get(box.key), box.node === node))];
      const frame = site.frame(`Graph around ${node.name}`, found.width, found.height, content, found.places.get(`n${node.at}`));
      emphasise(frame.querySelector("svg"));
      const select = (which, text) => {
        const options = [["1", "1 step"], ["2", "2 steps"], ["3", "3 steps"], ["1000", "all"]];
        const found = site.h("select", { onchange: (event) => { depths[which] = event.target.value; draw(); } },
          options.map(([value, said]) => site.h("option", { value, selected: depths[which] === value }, said)));
        return site.h("label", {}, `${text} `, found);
      };
      holder.replaceChildren(
        site.h("div", { class: "controls" }, select("up", "What it reads:"), select("down", "What reads it:")),
        left > 0 ? site.h("p", { class: "note" }, `${site.count(left)} more that are further away are not shown.`) : "",
        frame);
    };
    draw();
    return holder;
  };

  // ---- folders ----

  const partsOf = (node) => (node.folder ? node.folder.split("/") : []);

  // Folder -> what it holds, all levels: {path, folders: Map, nodes}.
  function tree() {
    const root = { path: "", folders: new Map(), nodes: [], total: 0 };
    for (const node of site.nodes) {
      let at = root;
      at.total += 1;
      for (const part of partsOf(node)) {
        const path = at.path ? `${at.path}/${part}` : part;
        if (!at.folders.has(part)) at.folders.set(part, { path, folders: new Map(), nodes: [], total: 0 });
        at = at.folders.get(part);
        at.total += 1;
      }
      at.nodes.push(node);
    }
    sort(root);
    return root;
  }
  const byName = new Intl.Collator("en", { numeric: true }).compare;

  function sort(folder) {
    folder.nodes.sort((a, b) => byName(a.name, b.name));
    folder.folders = new Map([...folder.folders].sort(([a], [b]) => byName(a, b)));
    for (const inner of folder.folders.values()) sort(inner);
  }
  site.byName = byName;

  let kept = null;
  site.folders = () => (kept = kept || tree());

  function isOpen(folder) {
    if (!folded.has(folder.path)) folded.set(folder.path, site.nodes.length <= 60);
    return folded.get(folder.path);
  }

  function visible() {
    const [boxes, groups, places] = [[], [], new Map()];
    const cover = (folder, key) => {
      for (const node of folder.nodes) places.set(node.at, key);
      for (const inner of folder.folders.values()) cover(inner, key);
    };
    const walk = (folder, parent) => {
      for (const inner of folder.folders.values()) {
        const key = `f${inner.path}`;
        if (!isOpen(inner)) {
          boxes.push({ ...site.boxOf(`▸ ${inner.path.split("/").pop()}`, `folder of ${site.count(inner.total)}`), key, parent, folder: inner });
          cover(inner, key);
        } else {
          groups.push({ key, parent, folder: inner });
          walk(inner, key);
        }
      }
      const shown = folder.nodes.slice(0, MOST_OF_FOLDER);
      for (const node of shown) {
        boxes.push({ ...nodeBox(node), parent });
        places.set(node.at, `n${node.at}`);
      }
      const rest = folder.nodes.slice(MOST_OF_FOLDER);
      if (rest.length) {
        const key = `r${folder.path}`;
        boxes.push({ ...site.boxOf(`${site.count(rest.length)} more`, "show as a list"), key, parent, list: folder });
        for (const node of rest) places.set(node.at, key);
      }
    };
    walk(site.folders(), undefined);
    return { boxes, groups, places };
  }

  function edgesOf(places) {
    const found = new Map();
    for (const node of site.nodes) {
      for (const read of node.reads) {
        const pair = [places.get(read), places.get(node.at)];
        if (pair[0] !== pair[1]) found.set(pair.join("\n"), pair);
      }
    }
    return [...found.values()];
  }

  site.folderGraph = () => {
    const holder = site.h("div", {});
    const toggle = (folder, draw) => ({
      href: location.hash || "#/",
      role: "button",
      "aria-expanded": String(isOpen(folder)),
      onclick: (event) => {
        event.preventDefault();
        folded.set(folder.path, !isOpen(folder));
        draw(folder.path);
      },
      onkeydown: (event) => event.key === " " && (event.preventDefault(), event.currentTarget.dispatchEvent(new MouseEvent("click", { cancelable: true }))),
    });
    const draw = (changed) => {
      let found = visible();
      let note = "";
      if (found.boxes.length > 2 * MOST && changed) {
        folded.set(changed, false);
        found = visible();
        note = site.h("p", { class: "note" }, "That would be too many boxes for one picture: fold another folder first.");
      }
      const { boxes, groups, places } = found;
      const laid = site.layered(boxes, edgesOf(places), groups);
      const frames = groups.map((group) => {
        const place = laid.places.get(group.key);
        const name = group.folder.path.split("/").pop();
        return site.s("g", { class: "folder", transform: `translate(${place.x} ${place.y})` },
          site.s("rect", { width: place.width, height: place.height, rx: 8 }),
          site.s("a", { ...toggle(group.folder, draw), class: "fold", "data-folder": group.folder.path },
            site.s("title", {}, `Fold ${group.folder.path}`),
            site.s("rect", { x: 6, y: -10, width: site.widthOf(name, "11px system-ui, sans-serif") + 26, height: 20, rx: 4 }),
            site.s("text", { x: 12, y: 4 }, `▾ ${name}`)));
      });
      const drawn = boxes.map((box) => {
        const place = laid.places.get(box.key);
        if (box.node) return drawNode(box, place, false);
        const attributes = box.folder
          ? { ...toggle(box.folder, draw), class: "box closed", "data-key": box.key, "data-folder": box.folder.path }
          : { href: `#/list?folder=${encodeURIComponent(box.list.path)}`, class: "box closed", "data-key": box.key };
        return site.drawBox(box, place, attributes, box.folder ? `Unfold ${box.folder.path}` : "Show as a list");
      });
      const frame = site.frame("Graph of the project", laid.width, laid.height, [drawEdges(laid), frames, drawn], changed && laid.places.get(`f${changed}`));
      emphasise(frame.querySelector("svg"));
      holder.replaceChildren(note, frame);
      const again = changed && [...holder.querySelectorAll("[data-folder]")].find((one) => one.dataset.folder === changed);
      if (again) again.focus();
    };
    draw();
    return holder;
  };
}
