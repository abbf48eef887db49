import { existsSync, statSync } from "node:fs";
import { join, posix } from "node:path";
import { REFERENCES } from "./contents.ts";
import { referencePage } from "./reference-page.ts";
import type { References } from "./references.ts";
import { type RenderedPage, renderPage } from "./render-page.ts";
import { type PageSource, readSources } from "./sources.ts";

/** Directories that pages link to. */
const DIRECTORIES = ["docs/decisions", "examples/own-filter", "examples/own-suite"];

export interface SiteMap {
  readonly pages: readonly RenderedPage[];
  /** Files that pages show, such as pictures. */
  readonly files: readonly string[];
  /** Links that lead nowhere, as sentences. */
  readonly broken: readonly string[];
}

/** Where a page is in the site. */
export function siteAddress(path: string): string {
  if (path === "README.md") return "index.html";
  return path.endsWith(".md") ? path.replace(/\.md$/, ".html") : `${path}/index.html`;
}

/** Renders all pages of the clone, and follows all their links. */
export function readSite(root: string, references: References): SiteMap {
  const sources: readonly PageSource[] = [
    ...readSources(root, DIRECTORIES),
    ...REFERENCES.map(({ name, path, guide }) => ({
      ...{ path, markdown: referencePage(references[name], posix.basename(guide)) },
    })),
  ];
  const known = new Set(sources.map(({ path }) => path));
  const isFile = (path: string) => existsSync(join(root, path)) && statSync(join(root, path)).isFile();
  const addressOf = (from: string, target: string): string | null => {
    if (!known.has(target) && !isFile(target)) return null;
    return posix.relative(posix.dirname(siteAddress(from)), known.has(target) ? siteAddress(target) : target);
  };
  const pages = sources.map((source) => renderPage(source, addressOf));
  const byPath = new Map(pages.map((page) => [page.path, page]));
  const files = new Set<string>();
  const broken: string[] = [];
  for (const page of pages) {
    for (const { href, target, fragment } of page.links) {
      if (target === null) continue;
      const to = byPath.get(target);
      if (to === undefined && isFile(target)) files.add(target);
      else if (to === undefined) broken.push(`${page.path}: ${href}: there is no such page or file`);
      else if (fragment !== "" && !to.ids.has(fragment))
        broken.push(`${page.path}: ${href}: ${target} has no such heading`);
    }
  }
  return { pages, files: [...files].sort(), broken };
}
