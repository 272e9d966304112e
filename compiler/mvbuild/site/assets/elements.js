// tag, attributes, children -> elements. Texts of the project become text nodes only: nothing here reads HTML.
"use strict";

var site = {};
{
  const SVG = "http://www.w3.org/2000/svg";

  function filled(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
    return element;
  }

  site.h = (tag, attributes, ...children) => filled(document.createElement(tag), attributes, children);
  site.s = (tag, attributes, ...children) => filled(document.createElementNS(SVG, tag), attributes, children);

  const link = (href, text) => site.h("a", { href, rel: "noreferrer noopener" }, text);

  const INLINE = /`([^`]+)`|\*\*([^*]+)\*\*|\[([^\]]+)\]\((https?:\/\/[^\s)]+)\)|(https?:\/\/[^\s<>()]+[^\s<>().,;:])/g;

  function inline(text) {
    const found = [];
    let at = 0;
    for (const match of text.matchAll(INLINE)) {
      found.push(text.slice(at, match.index));
      const [, code, strong, label, address, bare] = match;
      if (code) found.push(site.h("code", {}, code));
      else if (strong) found.push(site.h("strong", {}, strong));
      else found.push(link(address || bare, label || bare));
      at = match.index + match[0].length;
    }
    return [...found, text.slice(at)];
  }

  // The part of Markdown that descriptions use: paragraphs, lists, code, bold, links.
  site.prose = (text) =>
    text.trim().split(/\n\s*\n/).filter(Boolean).map((block) => {
      const lines = block.split("\n");
      if (lines.every((line) => /^\s*[-*] /.test(line))) {
        return site.h("ul", {}, lines.map((line) => site.h("li", {}, inline(line.replace(/^\s*[-*] /, "")))));
      }
      return site.h("p", {}, inline(lines.map((line) => line.replace(/^#+ /, "")).join(" ")));
    });

  const ruler = document.createElement("canvas").getContext("2d");

  // How many pixels a text takes.
  site.widthOf = (text, font = "13px system-ui, sans-serif") => {
    ruler.font = font;
    return ruler.measureText(text).width;
  };

  site.shortened = (text, most) => ([...text].length > most ? [...text].slice(0, most - 1).join("") + "…" : text);
}
