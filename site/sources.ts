import { readdirSync, readFileSync, statSync } from "node:fs";
import { join, posix } from "node:path";

/** Text of a page before it is rendered. `path` is that in the clone. */
export interface PageSource {
  readonly path: string;
  readonly markdown: string;
}

/** Languages of code, by the ending of a file. */
const LANGUAGES: Readonly<Record<string, string>> = { ts: "ts", sql: "sql", yaml: "yaml", json: "json", sh: "sh" };

/** The pages of the documentation: the clone's own, all below docs/, and a page for each directory of `directories`. */
export function readSources(root: string, directories: readonly string[]): readonly PageSource[] {
  const top = readdirSync(root).filter((name) => name.endsWith(".md"));
  const below = readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`);
  const pages = [...top, ...below].sort().map((path) => ({ path, markdown: readFileSync(join(root, path), "utf8") }));
  return [...pages, ...directories.map((path) => ({ path, markdown: directoryMarkdown(root, path) }))];
}

/** Lists a directory: links to its pages, and the text of its other files. */
function directoryMarkdown(root: string, directory: string): string {
  const files = readdirSync(join(root, directory)).filter((name) => statSync(join(root, directory, name)).isFile());
  const parts = files.sort().map((name) => {
    const text = readFileSync(join(root, directory, name), "utf8");
    if (!name.endsWith(".md")) return `## ${name}\n\n~~~~${LANGUAGES[posix.extname(name).slice(1)] ?? ""}\n${text}~~~~`;
    const title = /^# (.+)$/m.exec(text)?.[1] ?? name;
    return `- [${title}](${posix.basename(directory)}/${name})`;
  });
  return `# ${directory}\n\n${parts.join("\n")}\n`;
}
