import type { AbsoluteWeigher } from "./weigher.ts";

/** For a server that moves and may leave its cell: prefers the cell where the server is now (Nova's CrossCellWeigher). */
export function crossCellMove(currentCell: string): AbsoluteWeigher {
  return {
    name: "cross_cell_move",
    kind: "absolute",
    addTo({ cell, count }, weights, offset, multiplier) {
      const weight = cell === currentCell ? multiplier : -multiplier;
      for (let index = 0; index < count; index += 1) weights[offset + index] = weights[offset + index]! + weight;
    },
  };
}
