import { join } from "node:path";
import { expect, test } from "vitest";
import { CHAPTERS, REFERENCES } from "../../site/contents.ts";
import { readReferences } from "../../site/references.ts";
import { readSite } from "../../site/site-map.ts";

const site = readSite(join(import.meta.dirname, "../.."), await readReferences());

test("every link of the documentation leads to a page, a heading or a file", () => {
  expect(site.broken).toEqual([]);
  expect(site.pages.flatMap(({ links }) => links).length).toBeGreaterThan(100);
});

test("every page of docs/ is in one chapter of the site's menu, and the menu has no other", () => {
  const listed = CHAPTERS.flatMap(({ sources }) => sources).filter((path) => /^docs\/[^/]+\.md$/.test(path));
  const pages = site.pages.map(({ path }) => path).filter((path) => /^docs\/[^/]+\.md$/.test(path));
  const generated: readonly string[] = REFERENCES.map(({ path }) => path);
  expect(listed.toSorted()).toEqual(pages.filter((path) => !generated.includes(path)).toSorted());
});
