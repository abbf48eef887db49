import { readFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "../..");

/** A command of a page, with the output that the page shows below it. */
export interface TutorialStep {
  readonly command: string;
  /** Lines of the output, in order. `…` stands for any text; a line that is only `…`, for any lines. */
  readonly output: readonly string[];
}

/** The part of a page below one heading, as far as it can be carried out. */
export interface Tutorial {
  readonly page: string;
  /** Files that the reader writes: blocks of code whose first line is a comment with the file's name. */
  readonly files: readonly { readonly name: string; readonly text: string }[];
  /** The lines of `console` blocks: commands behind `$ `, continued behind `> `, and the output of each. */
  readonly steps: readonly TutorialStep[];
  /** The lines of `sh` blocks, which show no output. */
  readonly lines: readonly string[];
}

/** Reads the part of a page below the heading of this text, until the next heading of the same or a higher level. */
export function readTutorial(page: string, heading: string): Tutorial {
  const blocks = blocksOf(sectionOf(readFileSync(join(ROOT, page), "utf8"), heading, page));
  const files = blocks.flatMap(({ text }) => {
    const name = /^(?:\/\/|#) ([\w-]+(?:\.[\w-]+)+)\n/.exec(text)?.[1];
    return name === undefined ? [] : [{ name, text }];
  });
  const steps = blocks.filter(({ language }) => language === "console").flatMap(({ text }) => stepsOf(text));
  const lines = blocks.filter(({ language }) => language === "sh").flatMap(({ text }) => text.trimEnd().split("\n"));
  return { page, files, steps, lines: lines.map((line) => line.replace(/\s+# .*$/, "")) };
}

function sectionOf(markdown: string, heading: string, page: string): string {
  const lines = markdown.split("\n");
  const isCode = codeLines(lines);
  const start = lines.findIndex((line, at) => !isCode[at] && line.replace(/^#+ /, "") === heading && line !== heading);
  if (start === -1) throw new Error(`${page} has no heading "${heading}"`);
  const level = /^#+/.exec(lines[start] ?? "")?.[0].length ?? 0;
  const isEnd = (line: string, at: number) =>
    at > start && !isCode[at] && (/^(#+) /.exec(line)?.[1]?.length ?? level + 1) <= level;
  const end = lines.findIndex(isEnd);
  return lines.slice(start, end === -1 ? undefined : end).join("\n");
}

/** For each line, whether it is in a block of code, where `# ` begins a comment. */
function codeLines(lines: readonly string[]): readonly boolean[] {
  let isInside = false;
  return lines.map((line) => {
    if (line.startsWith("```")) isInside = !isInside;
    return isInside;
  });
}

function blocksOf(section: string): readonly { readonly language: string; readonly text: string }[] {
  return [...section.matchAll(/^```([a-z]*)\n([\s\S]*?)^```/gm)].map(([, language = "", text = ""]) => ({
    language,
    text,
  }));
}

/** The commands of one `console` block. Throws when output stands before the first command. */
export function stepsOf(text: string): readonly TutorialStep[] {
  const steps: { command: string; output: string[] }[] = [];
  for (const line of text.trimEnd().split("\n")) {
    const last = steps.at(-1);
    if (line.startsWith("$ ")) steps.push({ command: line.slice(2), output: [] });
    else if (last === undefined) throw new Error(`no command precedes the output "${line}"`);
    else if (line.startsWith("> ") && last.output.length === 0) last.command += `\n${line.slice(2)}`;
    else last.output.push(line);
  }
  return steps;
}

/** Returns the first line of the page that the output lacks, or null. Widths of columns do not count. */
export function missingLine(shown: readonly string[], output: string): string | null {
  const lines = output.split("\n").map(squeezed);
  let at = 0;
  for (const line of shown.filter((each) => each.trim() !== "" && each.trim() !== "…")) {
    const pattern = new RegExp(
      `^${squeezed(line)
        .split("…")
        .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"))
        .join(".*")}$`,
    );
    const found = lines.findIndex((candidate, index) => index >= at && pattern.test(candidate));
    if (found === -1) return line;
    at = found + 1;
  }
  return null;
}

const squeezed = (line: string): string => line.trim().replace(/\s+/g, " ");
