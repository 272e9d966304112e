// the address after # -> what is shown; the frame around it, keys, and light or dark.
"use strict";
{
  const main = site.h("main", { id: "main", tabindex: "-1" });
  const live = site.h("span", { class: "live", role: "status" });
  const side = site.h("nav", { class: "side", "aria-label": "Folders" });
  let turn = 0;

  async function content() {
    const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
    const parts = path.split("/").filter(Boolean).map(decodeURIComponent);
    if (!parts.length) return ["Overview", site.overview()];
    if (parts[0] === "list") return ["All", site.list(query || "")];
    if (parts[0] === "graph") return ["Graph", [site.h("h2", {}, "Graph"), site.h("div", { class: "tall" }, site.folderGraph())]];
    const node = parts[0] === "node" ? site.byId(parts[1]) : undefined;
    if (!node) return ["Not found", [site.h("h2", {}, "Not found"), site.h("p", {}, "This project has nothing of that name. ", site.h("a", { href: "#/" }, "Overview"))]];
    return [node.name, await site.nodePage(node, parts[2] || "about", parts.slice(3)), node];
  }

  async function show(moved) {
    const mine = (turn += 1);
    const top = document.scrollingElement.scrollTop;
    let found;
    try {
      found = await content();
    } catch (error) {
      found = ["Error", [site.h("h2", {}, "This page cannot be shown"), site.h("p", { class: "note bad" }, String(error.message || error))]];
    }
    if (mine !== turn) return; // another address was opened meanwhile
    const [title, elements, node] = found;
    document.title = `${title} · ${site.project.project}`;
    main.replaceChildren(...elements.flat(Infinity).filter(Boolean));
    document.body.classList.remove("open");
    for (const link of document.querySelectorAll("header nav a")) link.toggleAttribute("aria-current", isHere(link));
    reveal(node);
    document.scrollingElement.scrollTop = moved ? 0 : top;
  }

  const isHere = (link) => (location.hash.split("?")[0] || "#/") === link.getAttribute("href");

  // The tree opens down to the node that is shown.
  function reveal(node) {
    for (const link of side.querySelectorAll("a[aria-current]")) link.removeAttribute("aria-current");
    if (!node) return;
    let path = "";
    for (const part of node.folder ? node.folder.split("/") : []) {
      path = path ? `${path}/${part}` : part;
      const folder = [...side.querySelectorAll("details")].find((one) => one.dataset.path === path);
      if (!folder) return;
      folder.open = true;
      folder.dispatchEvent(new Event("toggle"));
    }
    const link = side.querySelector(`a[data-at="${node.at}"]`);
    if (link) link.setAttribute("aria-current", "page");
  }

  const THEMES = { auto: "◐", light: "☀", dark: "☾" };
  const kept = () => {
    try {
      return localStorage.getItem("mvbuild-theme") || "auto";
    } catch {
      return "auto";
    }
  };
  function themeButton() {
    const button = site.h("button", { type: "button", class: "theme" });
    const set = (theme) => {
      document.documentElement.dataset.theme = theme;
      button.textContent = THEMES[theme];
      button.title = `Colours: ${theme}`;
      button.setAttribute("aria-label", `Colours: ${theme}. Change them.`);
      try {
        localStorage.setItem("mvbuild-theme", theme);
      } catch {
        // Some browsers keep nothing for pages from disk.
      }
    };
    set(kept() in THEMES ? kept() : "auto");
    button.addEventListener("click", () => {
      const names = Object.keys(THEMES);
      set(names[(names.indexOf(document.documentElement.dataset.theme) + 1) % names.length]);
    });
    return button;
  }

  side.append(...site.sidebar().flat(Infinity));
  document.getElementById("site").append(
    site.h("a", { class: "skip", href: "#main", onclick: (event) => { event.preventDefault(); main.focus(); } }, "Skip to the content"),
    site.h("header", {},
      site.h("button", { type: "button", class: "menu", "aria-label": "Folders", onclick: () => document.body.classList.toggle("open") }, "☰"),
      site.h("a", { class: "brand", href: "#/" }, site.project.project),
      site.h("nav", { "aria-label": "Pages" }, site.h("a", { href: "#/" }, "Overview"), site.h("a", { href: "#/graph" }, "Graph"), site.h("a", { href: "#/list" }, "All")),
      site.searchBox(), live, themeButton()),
    site.h("div", { class: "body" }, side, main));

  document.addEventListener("keydown", (event) => {
    if (event.target.matches("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/") {
      event.preventDefault();
      document.getElementById("search").focus();
    }
  });
  window.addEventListener("hashchange", () => show(true));
  let before = "";
  site.watch(() => {
    live.textContent = site.liveNow.error ? "offline" : "live";
    live.title = site.liveNow.error || "Freshness is read from the catalog while this page is open.";
    live.classList.toggle("bad", Boolean(site.liveNow.error));
    // Drawn again only if something is different: what one has opened stays.
    const now = JSON.stringify([site.liveNow.error, site.liveNow.nodes]);
    if (now !== before) show(false);
    before = now;
  });
  show(true);
}
