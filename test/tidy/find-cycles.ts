/** Every path along the edges that returns to its beginning, each once, as `a → b → a`. */
export function findCycles(edges: ReadonlyMap<string, readonly string[]>): readonly string[] {
  const done = new Set<string>();
  const cycles: string[] = [];
  const walk = (node: string, path: readonly string[]): void => {
    const from = path.indexOf(node);
    if (from >= 0) cycles.push([...path.slice(from), node].join(" → "));
    if (from >= 0 || done.has(node)) return;
    for (const next of edges.get(node) ?? []) walk(next, [...path, node]);
    done.add(node);
  };
  for (const node of edges.keys()) walk(node, []);
  return cycles;
}
