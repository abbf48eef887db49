/**
 * The positions of the `most` highest weights, highest first. Among equal ones those first that come first from a place that the
 * seed decides, so that not everybody prefers the same.
 *
 * Cost: one pass, plus (most) for each weight that enters the list; a sort when all are asked for.
 */
export function rankHosts(weights: Float64Array, total: number, most: number, seed: number): number[] {
  if (total === 0 || most <= 0) return [];
  const start = seed % total;
  if (most >= total) {
    const order = Array.from({ length: total }, (_, index) => (start + index) % total);
    return order.sort((a, b) => weights[b]! - weights[a]!);
  }
  const ranked: number[] = [];
  let least = Number.NEGATIVE_INFINITY;
  for (let index = 0; index < total; index += 1) {
    const at = start + index < total ? start + index : start + index - total;
    const weight = weights[at]!;
    if (ranked.length === most && weight <= least) continue;
    let place = ranked.length === most ? most - 1 : ranked.length;
    while (place > 0 && weights[ranked[place - 1]!]! < weight) {
      ranked[place] = ranked[place - 1]!;
      place -= 1;
    }
    ranked[place] = at;
    if (ranked.length === most) least = weights[ranked[most - 1]!]!;
  }
  return ranked;
}
