import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { REFERENCES } from "./contents.ts";
import { pageFrame } from "./page-frame.ts";
import { readReferences } from "./references.ts";
import { readSite, siteAddress } from "./site-map.ts";
import { writeVersions } from "./versions.ts";

/** An entry of `search.json`. */
export interface SearchEntry {
  readonly page: string;
  readonly heading: string;
  readonly address: string;
  readonly text: string;
}

/** Writes the documentation of the clone `root` into the directory `into`, which it replaces. Throws if a link leads nowhere. */
export async function makeSite(root: string, into: string): Promise<void> {
  const references = await readReferences();
  const { pages, files, broken } = readSite(root, references);
  if (broken.length > 0) throw new Error(`these links lead to pages that do not exist:\n${broken.join("\n")}`);
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
  const titles = new Map(pages.map(({ path, title }) => [path, path === "README.md" ? "What Berth is" : title]));
  rmSync(into, { recursive: true, force: true });
  const write = (address: string, text: string): void => {
    mkdirSync(dirname(join(into, address)), { recursive: true });
    writeFileSync(join(into, address), text);
  };
  for (const page of pages) write(siteAddress(page.path), pageFrame(page, titles, version));
  const entries = pages.flatMap(({ path, title, sections }) =>
    sections.map(({ id, heading, text }): SearchEntry => {
      return { page: title, heading, address: `${siteAddress(path)}#${id}`, text: text.replaceAll(/\s+/g, " ").trim() };
    }),
  );
  write("search.json", JSON.stringify(entries));
  for (const { name, document } of REFERENCES) write(document, `${JSON.stringify(references[name], null, 2)}\n`);
  for (const file of files) cpSync(join(root, file), join(into, file));
  cpSync(join(import.meta.dirname, "static"), into, { recursive: true });
}

if (import.meta.main) {
  const root = join(import.meta.dirname, "..");
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
  const into = process.argv[2] ?? join(root, ".berth/site");
  await makeSite(root, join(into, version));
  writeVersions(into);
  process.stdout.write(`${into}/index.html\n`);
}
