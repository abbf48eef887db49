import { posix } from "node:path";
import { CHAPTERS, HOW_TOS, REFERENCES } from "./contents.ts";
import type { RenderedPage } from "./render-page.ts";
import { siteAddress } from "./site-map.ts";

const ENTITIES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const escaped = (text: string): string => text.replaceAll(/[&<>"]/g, (mark) => ENTITIES[mark] ?? mark);

const rootOf = (path: string): string => (path === "" ? "." : path);

/** The whole document of a page: its menu, the search and its text. It loads nothing but files of the site. */
export function pageFrame(page: RenderedPage, titles: ReadonlyMap<string, string>, version: string): string {
  const own = siteAddress(page.path);
  const to = (address: string): string => posix.relative(posix.dirname(own), address);
  const entry = (path: string): string => {
    const here = path === page.path ? ' aria-current="page"' : "";
    return `<li><a href="${to(siteAddress(path))}"${here}>${escaped(titles.get(path) ?? path)}</a></li>`;
  };
  const howTos = HOW_TOS.map(({ title, page: source, heading }) => {
    return `<li><a href="${to(siteAddress(source))}#${heading}">${escaped(title)}</a></li>`;
  });
  const menu = CHAPTERS.map(({ title, sources }) => {
    const shown = sources.flatMap((source) => [
      ...[source, ...REFERENCES.filter(({ guide }) => guide === source).map(({ path }) => path)],
    ]);
    return `<h2>${escaped(title)}</h2>\n<ul>\n${shown.map(entry).join("\n")}\n</ul>`;
  });
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escaped(page.title)} · Berth</title>
<link rel="stylesheet" href="${to("site.css")}">
<script type="module" src="${to("search.js")}"></script>
<script type="module" src="${to("versions.js")}"></script>
</head>
<body>
<a class="skip" href="#text">To the text</a>
<nav aria-label="Pages">
<p class="name"><a href="${to("index.html")}">Berth</a> <span id="version" data-root="${rootOf(to(""))}">${escaped(version)}</span></p>
<form role="search" data-root="${rootOf(to(""))}">
<label for="words">Search</label>
<input id="words" type="search" autocomplete="off" aria-controls="found">
</form>
<ul id="found" aria-live="polite"></ul>
${menu.slice(0, 1).join("\n")}
<h2>How to</h2>
<ul>
${howTos.join("\n")}
</ul>
${menu.slice(1).join("\n")}
</nav>
<main id="text">
${page.html}</main>
</body>
</html>
`;
}
