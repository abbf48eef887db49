/** The api's answer to a sync. */
export interface ShownSync {
  readonly changed: readonly {
    readonly cell: string;
    readonly host: string;
    readonly aggregates_added: readonly string[];
    readonly aggregates_removed: readonly string[];
    readonly ratios: Readonly<Record<string, number>> | null;
  }[];
  readonly unreachable_cells: readonly string[];
}

/** Makes one line for each host that had to be corrected, and one for each cell that did not answer. */
export function syncText(answer: ShownSync): string {
  const lines = answer.changed.map((one) => {
    const parts = [
      ...one.aggregates_added.map((uuid) => `+${uuid}`),
      ...one.aggregates_removed.map((uuid) => `-${uuid}`),
    ];
    if (one.ratios !== null) {
      const ratios = Object.entries(one.ratios).map(([name, ratio]) => `${name}=${ratio}`);
      parts.push(ratios.length === 0 ? "ratios as its agent reports them" : `ratios ${ratios.join(" ")}`);
    }
    return `${one.cell}\t${one.host}\t${parts.join(" ")}`;
  });
  const silent = answer.unreachable_cells.map((cell) => `cell ${cell} does not answer: it is updated when it does`);
  return [...lines, ...silent].map((line) => `${line}\n`).join("");
}
