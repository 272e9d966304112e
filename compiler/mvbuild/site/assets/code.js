// pieces of SQL -> highlighted lines, in which the names of tables are links.
"use strict";
{
  const WORDS =
    "all and anti any array as asc between bucket by case cast coalesce cross cube current_date current_timestamp date day desc distinct " +
    "else end escape except exists explode false filter first following for from full group grouping having if ilike in inner intersect " +
    "interval into is join last lateral left like limit map max min month not null nulls offset on or order outer over partition pivot " +
    "preceding qualify range rank right rlike rollup row row_number rows select semi sets some struct sum avg count table tablesample then " +
    "timestamp true trunc truncate unbounded union unpivot using values version view week when where window with within year of";
  const KEYWORDS = new Set(WORDS.split(" "));
  const TOKEN = /(--[^\n]*|\/\*[\s\S]*?\*\/|\{#[\s\S]*?#\})|('(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.)*")|(\{\{[\s\S]*?\}\}|\{%[\s\S]*?%\})|(\b\d[\d._]*\b)|([A-Za-z_]\w*)/g;
  const CLASSES = [null, "comment", "string", "template", "number", "word"];

  function highlighted(text) {
    const found = [];
    let at = 0;
    for (const match of text.matchAll(TOKEN)) {
      const kind = match.findIndex((group, i) => i > 0 && group !== undefined);
      if (kind === 5 && !KEYWORDS.has(match[0].toLowerCase())) continue;
      found.push(text.slice(at, match.index), site.h("span", { class: `sql-${CLASSES[kind]}` }, match[0]));
      at = match.index + match[0].length;
    }
    return [...found, text.slice(at)];
  }

  // A piece is a text, or [text, number of the node that it names].
  site.code = (pieces, label) => {
    const content = pieces.map((piece) => {
      if (typeof piece === "string") return highlighted(piece);
      const node = site.nodes[piece[1]];
      return site.h("a", { href: site.addressOf(node), title: node.short || site.kindOf(node) }, piece[0]);
    });
    return site.h("pre", { tabindex: "0", "aria-label": label }, site.h("code", {}, content));
  };
}
