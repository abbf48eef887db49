import type { SourceFile } from "./source-file.ts";

/** Names that several files define and export, with these files. A name that one file has as a value and as a type is one name. */
export function namesDefinedTwice(files: readonly SourceFile[]): readonly string[] {
  const definedBy = new Map<string, Set<string>>();
  for (const { path, exports } of files) {
    for (const name of exports) definedBy.set(name, (definedBy.get(name) ?? new Set()).add(path));
  }
  return [...definedBy].filter(([, by]) => by.size > 1).map(([name, by]) => `${name}: ${[...by].join(", ")}`);
}
