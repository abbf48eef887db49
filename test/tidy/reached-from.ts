/** The files and everything that they import, directly or indirectly. */
export function reachedFrom(
  files: readonly string[],
  edges: ReadonlyMap<string, readonly string[]>,
): ReadonlySet<string> {
  const reached = new Set(files);
  for (const file of reached) for (const target of edges.get(file) ?? []) reached.add(target);
  return reached;
}
