import { acceptedCreatesEnd } from "./accepted-creates-end.ts";
import { allOrNothing } from "./all-or-nothing.ts";
import type { Checker } from "./checker.ts";
import { deletedStaysDeleted } from "./deleted-stays-deleted.ts";
import { lawsHold } from "./laws-hold.ts";
import { noServerTwice } from "./no-server-twice.ts";
import { nothingLost } from "./nothing-lost.ts";

/** The checkers that hold for every run, whatever its load and its faults. */
export const standardCheckers: readonly Checker[] = [
  acceptedCreatesEnd,
  deletedStaysDeleted(),
  noServerTwice,
  nothingLost,
  allOrNothing,
  lawsHold,
];
