import type { ImportResult } from "./run-import.ts";

/** A summary of an import for people, line by line. */
export function reportLines(result: ImportResult): readonly string[] {
  if (result.kind === "already-done")
    return [
      `this ledger was imported from ${result.source} at ${result.doneAt.toISOString()}; --restart imports it again`,
    ];
  const rows = Object.entries(result.facts).filter(([name]) => name.endsWith(": row_count"));
  return [
    ...rows.map(([name, count]) => `${name.replace(": row_count", "")}: ${count}`),
    ...result.overfull.map((line) => `note: more is used than there is: ${line}`),
    ...result.rejected.map(
      ({ what, count, examples }) =>
        `does not fit: ${what}: ${count} (${examples.join("; ")}${count > examples.length ? "; …" : ""})`,
    ),
    ...result.differences.map(
      ({ fact, source, ledger }) => `differs: ${fact}: ${source} in the source, ${ledger} in the ledger`,
    ),
    isRight(result) ? "the import is complete: all counts and sums agree" : "the import is not complete",
  ];
}

/** Whether the ledger equals the source. */
export function isRight(result: ImportResult): boolean {
  return result.kind === "already-done" || (result.differences.length === 0 && result.rejected.length === 0);
}
