// the refreshes of an MV -> a chart of rows and seconds, and a table with everything that is recorded of each.
"use strict";
{
  const MOST = 60; // bars of a chart; the table has all
  const isFull = (one) => one.strategy === "full" || one.strategy === null;

  function nice(value) {
    const power = 10 ** Math.floor(Math.log10(value || 1));
    return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((step) => step * power).find((step) => step >= value) || 1;
  }

  // One panel: bars above the line, and below it for `under`.
  function panel(title, refreshes, width, height, over, under, format) {
    const left = 52;
    const most = nice(Math.max(...refreshes.map(over), 0));
    const least = under ? Math.max(...refreshes.map(under), 0) : 0;
    const below = least ? nice(least) : 0;
    const scale = (height - 24) / (most + below || 1);
    const zero = 18 + most * scale;
    const step = (width - left - 8) / refreshes.length;
    const wide = Math.min(38, Math.max(2, step * 0.66));
    const line = (y, text) => [
      site.s("line", { class: "grid", x1: left, x2: width - 8, y1: y, y2: y }),
      site.s("text", { class: "axis", x: left - 6, y: y + 4, "text-anchor": "end" }, text)];
    const bars = refreshes.map((one, i) => {
      const x = left + i * step + (step - wide) / 2;
      const kind = isFull(one) ? "full" : "incremental";
      const bar = (y, tall, name) => site.s("rect", { class: name, x, y, width: wide, height: Math.max(tall, tall > 0 ? 1 : 0), rx: Math.min(2, wide / 4) });
      return site.s("g", { class: `bar ${kind}`, "data-refresh": one.id },
        site.s("title", {}, sentence(one)),
        site.s("rect", { class: "field", x: left + i * step, y: 0, width: step, height }),
        bar(zero - over(one) * scale, over(one) * scale, "over"),
        under ? bar(zero, under(one) * scale, "under") : null,
        step >= 44 ? site.s("text", { class: "axis", x: x + wide / 2, y: zero - over(one) * scale - 4, "text-anchor": "middle" }, format(over(one))) : null);
    });
    return site.h("figure", {}, site.h("figcaption", {}, title),
      site.s("svg", { width, height: height + 2, role: "img", "aria-label": `${title}; the table below has the numbers` },
        line(18, format(most)), below ? line(zero + below * scale, format(below)) : null,
        site.s("line", { class: "zero", x1: left, x2: width - 8, y1: zero, y2: zero }), bars));
  }

  const rowsIn = (one) => one.added || 0;

  const why = (one) => (one.reason === "never-refreshed" ? "It was the first refresh." : one.why);

  const sentence = (one) =>
    [`Refresh ${one.id}, ${site.utc(one.at)}`, one.strategy || "unknown strategy", why(one),
      `${site.count(one.added || 0)} rows added, ${site.count(one.removed || 0)} removed`, one.seconds === null ? null : site.seconds(one.seconds)]
      .filter(Boolean).join("\n");

  function row(one) {
    const cells = [
      site.h("th", { scope: "row" }, String(one.id), " ", one.current ? site.h("span", { class: "chip plain" }, "current") : ""),
      site.h("span", { class: "nowrap" }, site.utc(one.at)),
      site.h("span", { class: "nowrap", title: site.STRATEGIES[one.strategy] }, site.h("span", { class: `key ${isFull(one) ? "full" : "incremental"}` }), one.strategy || "?"),
      one.reason ? [why(one), " ", site.h("code", {}, one.reason)] : "",
      site.count(one.added), site.count(one.removed),
      one.seconds === null ? "" : site.seconds(one.seconds),
      one.written === null ? "" : site.size(one.written),
      one.full === null || one.expected === null ? "" : isFull(one) ? site.size(one.expected) : `${site.size(one.expected)} of ${site.size(one.full)}`,
    ];
    return site.h("tr", { "data-refresh": one.id }, cells.map((cell, i) => (i ? site.h("td", { class: i > 3 ? "number" : null }, cell) : cell)));
  }

  site.history = (page) => {
    const all = page.history || [];
    if (!all.length) return site.h("p", { class: "note" }, "It was never refreshed, or its history is not kept.");
    const shown = all.slice(-MOST);
    const charts = site.h("div", { class: "charts" });
    const heads = ["Refresh", "Published", "Strategy", "Why it was full", "Rows added", "Rows removed", "Took", "Written", "Expected"];
    const table = site.h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Refreshes" }, site.h("table", {},
      site.h("thead", {}, site.h("tr", {}, heads.map((head) => site.h("th", { scope: "col", title: head === "Expected" ? "Bytes that it was expected to read and write, of those of a full refresh" : null }, head)))),
      site.h("tbody", {}, [...all].reverse().map(row))));
    const draw = () => {
      const width = Math.max(260, Math.min(900, charts.clientWidth || 600));
      charts.replaceChildren(
        panel(shown.some((one) => one.removed) ? "Rows added, and below the line rows removed" : "Rows added", shown, width, 130, rowsIn, shown.some((one) => one.removed) ? (one) => one.removed || 0 : null, site.count),
        panel("Seconds", shown, width, 90, (one) => one.seconds || 0, null, site.seconds));
    };
    const holder = site.h("div", { class: "history" },
      site.h("p", {}, `${site.plural(all.length, "refresh")} that can still be read, oldest first. `,
        [true, false].map((full) => {
          const names = [...new Set(all.filter((one) => isFull(one) === full).map((one) => one.strategy || "?"))];
          return names.length ? site.h("span", { class: "legend nowrap" }, site.h("span", { class: `key ${full ? "full" : "incremental"}` }), full ? "full" : `incremental: ${names.join(", ")}`) : "";
        })),
      charts, table);
    new ResizeObserver(draw).observe(charts);
    const mark = (event) => {
      const at = event.type === "mouseover" ? event.target.closest("[data-refresh]") : null;
      for (const one of holder.querySelectorAll("[data-refresh]")) one.classList.toggle("near", Boolean(at) && one.dataset.refresh === at.dataset.refresh);
    };
    holder.addEventListener("mouseover", mark);
    holder.addEventListener("mouseout", mark);
    return holder;
  };
}
