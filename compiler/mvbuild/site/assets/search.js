// what one types -> the nodes and columns that fit, best first.
"use strict";
{
  const MOST = 14;

  function score(node, words, columns) {
    const [name, relation] = [node.name.toLowerCase(), (node.relation || "").toLowerCase()];
    let total = 0;
    let column = null;
    for (const word of words) {
      if (name === word) total += 100;
      else if (name.startsWith(word)) total += 60;
      else if (name.includes(word)) total += 40;
      else if (relation.includes(word)) total += 30;
      else if (node.tags.some((tag) => tag.toLowerCase() === word)) total += 25;
      else if (node.folder.toLowerCase().includes(word)) total += 15;
      else if (node.short.toLowerCase().includes(word)) total += 10;
      else {
        const found = columns && columns[node.at].split(" ").filter((one) => one.toLowerCase().includes(word)).sort((a, b) => a.length - b.length)[0];
        if (!found) return null;
        column = found;
        total += found.toLowerCase() === word ? 35 : 8;
      }
    }
    return { node, total: total + Math.min(node.readers.length, 20) / 10, column };
  }

  site.find = (text, columns) => {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) return [];
    return site.nodes.map((node) => score(node, words, columns)).filter(Boolean)
      .sort((a, b) => b.total - a.total || a.node.name.length - b.node.name.length).slice(0, MOST);
  };

  site.searchBox = () => {
    let found = [];
    let at = -1;
    let columns = null;
    const list = site.h("ul", { id: "found", role: "listbox", "aria-label": "Results", hidden: true });
    const input = site.h("input", {
      id: "search", type: "search", placeholder: "Search  /", "aria-label": "Search tables, models and columns", autocomplete: "off", spellcheck: "false",
      role: "combobox", "aria-controls": "found", "aria-expanded": "false", "aria-autocomplete": "list",
    });
    const addressOf = (one) => (one.column ? site.addressOf(one.node, "lineage", one.column) : site.addressOf(one.node));
    const close = () => {
      list.hidden = true;
      input.setAttribute("aria-expanded", "false");
      input.removeAttribute("aria-activedescendant");
    };
    const choose = (one) => {
      close();
      input.value = "";
      input.blur();
      location.hash = addressOf(one);
    };
    const mark = () => {
      [...list.children].forEach((item, i) => item.setAttribute("aria-selected", String(i === at)));
      if (list.children[at]) {
        input.setAttribute("aria-activedescendant", list.children[at].id);
        list.children[at].scrollIntoView({ block: "nearest" });
      }
    };
    const show = () => {
      found = site.find(input.value, columns);
      at = found.length ? 0 : -1;
      list.replaceChildren(...(found.length ? found.map((one, i) =>
        site.h("li", { id: `found${i}`, role: "option", onmousedown: (event) => { event.preventDefault(); choose(one); } },
          site.h("span", { class: `dot ${site.classOf(one.node)}`, "aria-hidden": "true" }), site.h("b", {}, one.node.name), one.column ? `.${one.column}` : "", " ",
          site.h("span", { class: "muted" }, site.kindOf(one.node), one.node.folder ? ` in ${one.node.folder}` : ""))) : [site.h("li", { class: "muted", role: "presentation" }, "Nothing found")]));
      list.hidden = !input.value.trim();
      input.setAttribute("aria-expanded", String(!list.hidden));
      mark();
    };
    input.addEventListener("input", show);
    input.addEventListener("focus", async () => {
      if (!columns) columns = await site.loadColumns();
      if (input.value) show();
    });
    input.addEventListener("blur", close);
    input.addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        event.preventDefault();
        at = found.length ? (at + (event.key === "ArrowDown" ? 1 : -1) + found.length) % found.length : -1;
        mark();
      } else if (event.key === "Enter" && found[at]) choose(found[at]);
      else if (event.key === "Escape") {
        input.value = "";
        close();
        input.blur();
      }
    });
    return site.h("div", { class: "search", role: "search" }, input, list);
  };
}
