import { fileURLToPath } from "node:url";

/** A CPU profile of V8 as the inspector returns it (Profiler.Profile). */
export interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
    readonly children?: readonly number[];
  }[];
  readonly samples: readonly number[];
  /** Microseconds before each sample. */
  readonly timeDeltas: readonly number[];
}

/** CPU milliseconds by stack: the frames from the outermost to the innermost, joined by semicolons, as flame graph tools read them. */
export type FoldedStacks = ReadonlyMap<string, number>;

const ROOT = new URL("../../", import.meta.url).href;
/** Frames of V8 that represent no work of this process. */
const IDLE = new Set(["(idle)", "(root)", "(program)"]);

/** Adds up the samples of a profile by their stacks, below `process`. Time without work is left out. */
export function foldProfile(process: string, profile: CpuProfile): FoldedStacks {
  const parents = new Map<number, number>();
  for (const { id, children = [] } of profile.nodes) for (const child of children) parents.set(child, id);
  const frames = new Map(profile.nodes.map((node) => [node.id, node.callFrame]));
  const stacks = new Map<number, string>();
  const stackOf = (id: number): string => {
    const known = stacks.get(id);
    if (known !== undefined) return known;
    const parent = parents.get(id);
    const frame = frames.get(id)!;
    const stack = parent === undefined ? process : `${stackOf(parent)};${nameOf(frame)}`;
    stacks.set(id, stack);
    return stack;
  };
  const folded = new Map<string, number>();
  for (const [index, id] of profile.samples.entries()) {
    if (IDLE.has(frames.get(id)?.functionName ?? "(root)")) continue;
    const stack = stackOf(id);
    folded.set(stack, (folded.get(stack) ?? 0) + (profile.timeDeltas[index] ?? 0) / 1_000);
  }
  return folded;
}

/** CPU milliseconds of each function itself, without the functions that it called, the most first. */
export function selfTimes(stacks: FoldedStacks): readonly (readonly [name: string, ms: number])[] {
  const times = new Map<string, number>();
  for (const [stack, ms] of stacks) {
    const name = stack.slice(stack.lastIndexOf(";") + 1);
    times.set(name, (times.get(name) ?? 0) + ms);
  }
  return [...times].sort(([, a], [, b]) => b - a);
}

/** CPU milliseconds by the package or folder whose code ran, the most first. */
export function selfTimesByPlace(stacks: FoldedStacks): readonly (readonly [name: string, ms: number])[] {
  const times = new Map<string, number>();
  for (const [name, ms] of selfTimes(stacks)) {
    const place = placeOf(name);
    times.set(place, (times.get(place) ?? 0) + ms);
  }
  return [...times].sort(([, a], [, b]) => b - a);
}

/** A line of a frame's text, for example `decode task.ts:12`. Semicolons separate frames, so none is left in a name. */
function nameOf({ functionName, url, lineNumber }: CpuProfile["nodes"][number]["callFrame"]): string {
  const name = (functionName === "" ? "(anonymous)" : functionName).replaceAll(";", ",");
  if (url === "") return name;
  const place = url.startsWith("file:") ? fileOf(url) : url;
  return `${name} ${place}:${lineNumber + 1}`;
}

/** The path within the tree of Berth that the process runs from, which may be another one than this. */
function fileOf(url: string): string {
  if (url.startsWith(ROOT)) return url.slice(ROOT.length);
  return fileURLToPath(url).replace(/^.*\/(?=(node_modules|adapters|services|core|runtime|proto|cli)\/)/, "");
}

function placeOf(name: string): string {
  const file = /\S+ (\S+):\d+$/.exec(name)?.[1];
  if (file === undefined) return "V8 and built-in functions";
  const [, dependency] = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file) ?? [];
  if (dependency !== undefined) return dependency;
  return file.startsWith("node:") ? "node:" : file.split("/").slice(0, 2).join("/");
}
