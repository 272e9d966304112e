// boxes and edges -> their places in layers, from left to right; a picture -> a frame in which it is moved and zoomed.
"use strict";
{
  const LEAST = 34; // pixels from one bend of an edge to the next: closer ones look like steps

  // boxes: [{key, width, height, parent?}], edges: [[key, key]], groups: [{key, parent?}].
  // -> {width, height, places: Map key -> {x, y, width, height}, paths: [{from, to, d}]}, x and y of the upper left corner.
  site.layered = (boxes, edges, groups = [], spacing = {}) => {
    const graph = new dagre.graphlib.Graph({ compound: groups.length > 0 });
    graph.setGraph({ rankdir: "LR", nodesep: 12, ranksep: 56, marginx: 12, marginy: 12, ...spacing });
    graph.setDefaultEdgeLabel(() => ({}));
    for (const group of groups) graph.setNode(group.key, {});
    for (const box of boxes) graph.setNode(box.key, { width: box.width, height: box.height });
    for (const one of [...groups, ...boxes]) if (one.parent) graph.setParent(one.key, one.parent);
    for (const [from, to] of edges) graph.setEdge(from, to);
    dagre.layout(graph);
    const places = new Map();
    for (const key of graph.nodes()) {
      const { x, y, width, height } = graph.node(key);
      places.set(key, { x: x - width / 2, y: y - height / 2, width, height });
    }
    // From the right side of a box to the left side of the next, wherever the layout would have them meet.
    const paths = graph.edges().map((edge) => {
      const [from, to] = [places.get(edge.v), places.get(edge.w)];
      const [start, end] = [{ x: from.x + from.width, y: from.y + from.height / 2 }, { x: to.x, y: to.y + to.height / 2 }];
      const points = [start];
      for (const point of graph.edge(edge).points.slice(1, -1)) {
        if (point.x > points.at(-1).x + LEAST && point.x < end.x - LEAST) points.push(point);
      }
      return { from: edge.v, to: edge.w, d: curve([...points, end]) };
    });
    const { width, height } = graph.graph();
    return { width: Math.max(width, 1), height: Math.max(height, 1), places, paths };
  };

  // Through the points, level at each.
  function curve(points) {
    let d = `M${points[0].x} ${points[0].y}`;
    for (let i = 1; i < points.length; i += 1) {
      const [a, b] = [points[i - 1], points[i]];
      const middle = (a.x + b.x) / 2;
      d += `C${middle} ${a.y} ${middle} ${b.y} ${b.x} ${b.y}`;
    }
    return d;
  }
  site.curve = curve;

  // A picture that is dragged, zoomed and used by keyboard. `start`: the place that is shown first, if not everything fits.
  site.frame = (label, width, height, content, start) => {
    const group = site.s("g", {}, content);
    const svg = site.s("svg", { role: "group", "aria-label": label, tabindex: "0", class: "picture" }, group);
    const view = { x: 0, y: 0, scale: 1 };
    const show = () => group.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.scale})`);
    const size = () => [svg.clientWidth || 600, svg.clientHeight || 400];

    function zoom(factor, x, y) {
      const [w, h] = size();
      [x, y] = [x ?? w / 2, y ?? h / 2];
      const scale = Math.min(3, Math.max(0.05, view.scale * factor));
      view.x = x - ((x - view.x) * scale) / view.scale;
      view.y = y - ((y - view.y) * scale) / view.scale;
      view.scale = scale;
      show();
    }
    function fit(least) {
      const [w, h] = size();
      view.scale = Math.max(least, Math.min(1, w / width, h / height));
      const fits = (all, part) => all * view.scale <= part + 1;
      const middle = (from, extent, all, part) => Math.min(0, Math.max(part - all * view.scale, part / 2 - (from + extent / 2) * view.scale));
      view.x = fits(width, w) || !start ? Math.max(0, (w - width * view.scale) / 2) : middle(start.x, start.width, width, w);
      view.y = fits(height, h) || !start ? Math.max(0, (h - height * view.scale) / 2) : middle(start.y, start.height, height, h);
      show();
    }

    const pointers = new Map();
    let moved = false;
    svg.addEventListener("pointerdown", (event) => {
      pointers.set(event.pointerId, event);
      moved = false;
    });
    svg.addEventListener("pointermove", (event) => {
      const before = pointers.get(event.pointerId);
      if (!before) return;
      const others = [...pointers.values()].filter((one) => one.pointerId !== event.pointerId);
      const box = svg.getBoundingClientRect();
      if (others.length) {
        const distance = (one) => Math.hypot(one.clientX - others[0].clientX, one.clientY - others[0].clientY) || 1;
        zoom(distance(event) / distance(before), others[0].clientX - box.x, others[0].clientY - box.y);
      } else {
        if (!moved && Math.hypot(event.clientX - before.clientX, event.clientY - before.clientY) < 4) return;
        if (!moved) svg.setPointerCapture(event.pointerId);
        view.x += event.clientX - before.clientX;
        view.y += event.clientY - before.clientY;
        show();
      }
      moved = true;
      pointers.set(event.pointerId, event);
    });
    for (const end of ["pointerup", "pointercancel", "pointerleave"]) svg.addEventListener(end, (event) => pointers.delete(event.pointerId));
    svg.addEventListener("dragstart", (event) => event.preventDefault());
    // The end of a drag is no click.
    svg.addEventListener("click", (event) => moved && event.preventDefault(), true);
    svg.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const box = svg.getBoundingClientRect();
      zoom(Math.exp(-event.deltaY / 300), event.clientX - box.x, event.clientY - box.y);
    }, { passive: false });
    const MOVES = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
    svg.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "+" || event.key === "=") zoom(1.25);
      else if (event.key === "-") zoom(0.8);
      else if (event.key === "0") fit(0.05);
      else if (MOVES[event.key]) {
        view.x += MOVES[event.key][0];
        view.y += MOVES[event.key][1];
        show();
      } else return;
      event.preventDefault();
    });
    // What is focused by keyboard is moved into sight.
    svg.addEventListener("focusin", (event) => {
      if (event.target === svg || !event.target.matches(":focus-visible")) return;
      const [inner, outer] = [event.target.getBoundingClientRect(), svg.getBoundingClientRect()];
      if (inner.left < outer.left) view.x += outer.left - inner.left + 20;
      if (inner.right > outer.right) view.x -= inner.right - outer.right + 20;
      if (inner.top < outer.top) view.y += outer.top - inner.top + 20;
      if (inner.bottom > outer.bottom) view.y -= inner.bottom - outer.bottom + 20;
      svg.scrollLeft = svg.scrollTop = 0;
      show();
    });
    // Readable first: what does not fit at this scale is dragged into sight.
    requestAnimationFrame(() => {
      const [w] = size();
      const least = w < 500 ? 0.8 : 0.62;
      const scale = Math.max(least, Math.min(1, w / width));
      if (!svg.closest(".tall")) svg.style.height = `${Math.max(150, Math.min(height * scale + 8, 0.62 * innerHeight))}px`;
      fit(least);
    });
    const button = (text, title, act) => site.h("button", { type: "button", title, "aria-label": title, onclick: act }, text);
    return site.h("div", { class: "frame" }, svg, site.h("div", { class: "zoom" },
      site.h("span", { class: "hint" }, "Drag to move. Zoom with the buttons, with Ctrl and the wheel, or with + and −."),
      button("+", "Zoom in", () => zoom(1.25)),
      button("−", "Zoom out", () => zoom(0.8)),
      button("⤢", "Show everything", () => fit(0.05))));
  };

  // A box with a name, a line below it, and the sign of its state.
  const HEIGHT = 42;
  site.boxOf = (name, below, state) => {
    const text = site.shortened(name, 34);
    const width = Math.max(site.widthOf(text, "600 13px system-ui, sans-serif"), site.widthOf(below, "11px system-ui, sans-serif")) + 28 + (state ? 18 : 0);
    return { text, below, state, width: Math.ceil(Math.max(width, 96)), height: HEIGHT };
  };
  site.drawBox = (box, place, attributes, title) =>
    site.s("a", { ...attributes, transform: `translate(${place.x} ${place.y})` },
      site.s("title", {}, title),
      site.s("rect", { width: place.width, height: HEIGHT, rx: 6 }),
      site.s("path", { class: "bar", d: `M6 0 a6 6 0 0 0 -6 6 v${HEIGHT - 12} a6 6 0 0 0 6 6 z` }),
      site.s("text", { x: 14, y: 18, class: "name" }, box.text),
      site.s("text", { x: 14, y: 33, class: "below" }, box.below),
      box.state ? site.s("text", { x: place.width - 18, y: 19, class: `sign ${box.state}` }, site.STATES[box.state][0]) : null);
}
