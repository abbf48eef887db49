import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { parseAst } from "rolldown/parseAst";

/** A TypeScript file of the repository, reduced to the facts that the rules need. Paths are relative to the root. */
export interface SourceFile {
  readonly path: string;
  readonly text: string;
  readonly lineCount: number;
  readonly imports: readonly Import[];
  readonly functions: readonly FunctionSpan[];
  /** The parts of its environment that it uses: `process`, `Date.now`, … */
  readonly ambient: ReadonlySet<string>;
  /** Lines with the type `any`. */
  readonly anyLines: readonly number[];
  /** Lines that await or promise something. */
  readonly waitingLines: readonly number[];
  /** The names that it defines and exports. */
  readonly exports: readonly string[];
  /** Its classes, except errors. */
  readonly classes: readonly ClassSpan[];
  /** It only exports the definitions of others. */
  readonly isBarrel: boolean;
}

export interface ClassSpan {
  readonly name: string;
  readonly lineCount: number;
  readonly isExported: boolean;
}

export interface Import {
  /** Path of a file of the repository, or the name of a package. */
  readonly target: string;
  readonly isLocal: boolean;
  /** The import vanishes at run time. */
  readonly isTypeOnly: boolean;
}

export interface FunctionSpan {
  readonly line: number;
  readonly lineCount: number;
  /** The number of lines that do not belong to a nested function. */
  readonly ownLineCount: number;
}

/** Any node of the syntax tree. The rules use few of its many shapes. */
interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [property: string]: unknown;
}

const FUNCTION_TYPES = new Set(["FunctionDeclaration", "FunctionExpression", "ArrowFunctionExpression"]);
const AMBIENT_OBJECTS = new Set(["process", "performance", "console", "crypto", "fetch"]);
const AMBIENT_TIMERS = ["setTimeout", "setInterval", "setImmediate", "queueMicrotask"];

/** Every file below `dir` for which `wanted` returns true, without node_modules and names that begin with a dot. */
export function listFiles(root: string, dir: string, wanted: (path: string) => boolean): readonly string[] {
  return readdirSync(join(root, dir), { withFileTypes: true }).flatMap((entry) => {
    const path = dir === "" ? entry.name : `${dir}/${entry.name}`;
    if (entry.name.startsWith(".") || entry.name === "node_modules") return [];
    if (entry.isDirectory()) return listFiles(root, path, wanted);
    return wanted(path) ? [path] : [];
  });
}

export function readSourceFile(root: string, path: string): SourceFile {
  const text = readFileSync(join(root, path), "utf8");
  const program = parseAst(text, { lang: "ts" }) as unknown as Node;
  const lineOf = lineFinder(text);
  const imports: Import[] = [];
  const functions: { start: number; end: number }[] = [];
  const ambient = new Set<string>();
  const anyLines: number[] = [];
  const waitingLines: number[] = [];
  visit(program, (node, parent) => {
    const imported = readImport(node);
    if (imported !== null) imports.push(resolveImport(root, path, imported));
    if (FUNCTION_TYPES.has(node.type)) functions.push(parent?.type === "MethodDefinition" ? parent : node);
    if (node.type === "TSAnyKeyword") anyLines.push(lineOf(node.start));
    if (isWaiting(node)) waitingLines.push(lineOf(node.start));
    const name = readAmbient(node, parent);
    if (name !== null) ambient.add(name);
  });
  return {
    path,
    text,
    lineCount: text.split("\n").length - 1,
    imports,
    functions: functions.map((span) => measure(span, functions, lineOf)),
    ambient,
    anyLines,
    waitingLines,
    exports: readExports(program),
    classes: readClasses(program, lineOf),
    isBarrel: isBarrel(program),
  };
}

function visit(node: Node, see: (node: Node, parent: Node | null) => void, parent: Node | null = null): void {
  see(node, parent);
  for (const value of Object.values(node)) {
    for (const child of Array.isArray(value) ? value : [value]) {
      if (typeof child === "object" && child !== null && typeof (child as Node).type === "string")
        visit(child as Node, see, node);
    }
  }
}

function readImport(node: Node): { readonly source: string; readonly isTypeOnly: boolean } | null {
  const source = (node.source as Node | null | undefined)?.value;
  if (typeof source !== "string") return null;
  // `import { type A }` still loads the module, because types are stripped, not elided.
  return { source, isTypeOnly: (node.importKind ?? node.exportKind) === "type" };
}

function resolveImport(
  root: string,
  from: string,
  found: { readonly source: string; readonly isTypeOnly: boolean },
): Import {
  const isLocal = found.source.startsWith(".");
  const target = isLocal ? relative(root, join(root, dirname(from), found.source)) : found.source;
  return { target, isLocal, isTypeOnly: found.isTypeOnly };
}

/** `process` and similar globals, unless the name is a property's or stands in a type. */
function readAmbient(node: Node, parent: Node | null): string | null {
  if (node.type === "NewExpression" && nameOf(node.callee) === "Date") {
    return (node.arguments as Node[]).length === 0 ? "new Date()" : null;
  }
  if (node.type === "MemberExpression") {
    const path = `${nameOf(node.object)}.${nameOf(node.property)}`;
    return path === "Date.now" || path === "Math.random" ? path : null;
  }
  if (node.type === "CallExpression") return AMBIENT_TIMERS.find((timer) => timer === nameOf(node.callee)) ?? null;
  if (node.type === "ImportDeclaration") return nameOf(node.source) === "node:process" ? "process" : null;
  if (node.type !== "Identifier" || !AMBIENT_OBJECTS.has(String(node.name))) return null;
  const isUsed =
    (parent?.type === "MemberExpression" && parent.object === node) ||
    ((parent?.type === "CallExpression" || parent?.type === "NewExpression") && parent.callee === node) ||
    (parent?.type === "CallExpression" && (parent.arguments as unknown[]).includes(node));
  return isUsed ? String(node.name) : null;
}

function nameOf(node: unknown): string {
  return String((node as Node | null)?.name ?? (node as Node | null)?.value ?? "");
}

function measure(
  span: { readonly start: number; readonly end: number },
  all: readonly { readonly start: number; readonly end: number }[],
  lineOf: (offset: number) => number,
): FunctionSpan {
  const length = (one: { readonly start: number; readonly end: number }) => lineOf(one.end) - lineOf(one.start) + 1;
  const within = (inner: { readonly start: number; readonly end: number }, outer: typeof inner) =>
    inner !== outer && inner.start >= outer.start && inner.end <= outer.end;
  const inside = all.filter((other) => within(other, span));
  const outermost = inside.filter((one) => !inside.some((other) => within(one, other)));
  const theirs = outermost.reduce((sum, one) => sum + length(one) - 1, 0);
  return { line: lineOf(span.start), lineCount: length(span), ownLineCount: length(span) - theirs };
}

const PROMISES = new Set(["Promise", "PromiseLike", "AsyncIterable", "AsyncIterator", "AsyncGenerator"]);

function isWaiting(node: Node): boolean {
  return (
    node.async === true || node.type === "AwaitExpression" || (node.type === "Identifier" && PROMISES.has(nameOf(node)))
  );
}

function readExports(program: Node): readonly string[] {
  return (program.body as Node[]).flatMap((statement) => {
    const declared = statement.type === "ExportNamedDeclaration" ? (statement.declaration as Node | null) : null;
    if (declared === null) return [];
    return ((declared.declarations as Node[] | undefined) ?? [declared]).map(({ id }) => nameOf(id));
  });
}

function readClasses(program: Node, lineOf: (offset: number) => number): readonly ClassSpan[] {
  return (program.body as Node[]).flatMap((statement) => {
    const isExported = statement.type === "ExportNamedDeclaration";
    const declared = isExported ? (statement.declaration as Node | null) : statement;
    if (declared?.type !== "ClassDeclaration") return [];
    if (/Error$/.test(nameOf(declared.superClass) + nameOf(declared.id))) return [];
    const lineCount = lineOf(declared.end) - lineOf(declared.start) + 1;
    return [{ name: nameOf(declared.id), lineCount, isExported }];
  });
}

function isBarrel(program: Node): boolean {
  const statements = program.body as Node[];
  const reExports = statements.filter(
    (one) => one.type === "ExportAllDeclaration" || (one.type === "ExportNamedDeclaration" && one.source !== null),
  );
  return statements.length > 1 && reExports.length === statements.length;
}

function lineFinder(text: string): (offset: number) => number {
  const starts = [0, ...[...text.matchAll(/\n/g)].map((match) => match.index + 1)];
  return (offset) => {
    let low = 0;
    let high = starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((starts[middle] as number) <= offset) low = middle;
      else high = middle - 1;
    }
    return low + 1;
  };
}
