import type { ConsoleQuestion } from "../../../proto/gen/berth/cell.ts";

/** The parts of a question about a guest of which each question has one. */
export const ASKS_NOTHING = {
  ...{ bytesMax: 0, open: undefined, pinning: false, diagnostics: false, interfaces: undefined, revision: 0 },
} as const satisfies Partial<ConsoleQuestion>;
