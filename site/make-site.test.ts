import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { HOW_TOS } from "./contents.ts";
import { makeSite, type SearchEntry } from "./make-site.ts";

let into: string;
beforeAll(async () => {
  into = mkdtempSync(join(tmpdir(), "berth-site-"));
  await makeSite(join(import.meta.dirname, ".."), into);
});
afterAll(() => rmSync(into, { recursive: true, force: true }));

const pages = () => readdirSync(into, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".html"));

test("every address in the written pages, menus included, is a file of the site, and none is of another origin", () => {
  const missing = pages().flatMap((page) => {
    const html = readFileSync(join(into, page), "utf8");
    const addresses = [...html.matchAll(/ (?:href|src)="([^"]*)"/g)].map(([, address = ""]) => address);
    const own = addresses.filter((address) => !/^(https?:|#)/.test(address));
    return own
      .map((address) => join(into, dirname(page), decodeURI(address.split("#")[0] ?? "")))
      .filter((file) => !existsSync(file))
      .map((file) => `${page}: ${file}`);
  });
  expect(missing).toEqual([]);
  expect(pages().length).toBeGreaterThan(35);
  for (const page of pages())
    expect(readFileSync(join(into, page), "utf8")).not.toMatch(/<(script|img|link)[^>]*"https?:/);
});

test("each how-to of the menu leads to a heading that exists", () => {
  const menu = readFileSync(join(into, "docs/moves.html"), "utf8").split("<h2>How to</h2>")[1]?.split("</ul>")[0] ?? "";
  const links = [...menu.matchAll(/href="([^"#]*)#([^"]*)"/g)];
  expect(links.length).toBe(HOW_TOS.length);
  for (const [, page = "", id] of links)
    expect(readFileSync(join(into, "docs", page === "" ? "moves.html" : page), "utf8")).toContain(` id="${id}"`);
});

test("the search finds a section by words of its heading and of its text", () => {
  const entries = JSON.parse(readFileSync(join(into, "search.json"), "utf8")) as readonly SearchEntry[];
  const found = entries.filter(({ page, text }) => page === "The audit" && text.includes("--publish"));
  expect(found.map(({ address }) => address)).toEqual(["docs/audit.html#for-dashboards"]);
  // Commands stand in blocks of code.
  const drain = entries.find(({ address }) => address === "docs/moves.html#emptying-a-host");
  expect(drain?.text).toContain("npx berth host drain HOST");
});

test.each([
  ["placement-api.html", "placement.openapi.json", "get-allocation_candidates", "policy <code>placement:"],
  ["compute-reference.html", "compute.openapi.json", "put-serversidtags", "From 2.26 on"],
  ["compute-reference.html", "compute.openapi.json", "get-images", "From 2.1 to 2.35"],
  ["compute-reference.html", "compute.openapi.json", "post-serversidaction", "<code>os-migrateLive</code>"],
  [
    "operators-reference.html",
    "operators.openapi.json",
    "put-ratios",
    "Policy <code>os_compute_api:berth:ratios:update",
  ],
])("the reference %s has its calls, and the document %s is beside it", (page, document, id, text) => {
  const html = readFileSync(join(into, "docs", page), "utf8");
  const start = html.indexOf(`<h3 id="${id}">`);
  expect(start, id).toBeGreaterThan(0);
  expect(html.slice(start, html.indexOf("<h3", start + 1))).toContain(text);
  const { openapi } = JSON.parse(readFileSync(join(into, "docs", document), "utf8"));
  expect(openapi).toBe("3.1.1");
});
