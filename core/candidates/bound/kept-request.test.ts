import { expect, test } from "vitest";
import { provider, viewOf } from "../../../test/rigs/view-builders.ts";
import { resourceClass } from "../../ledger/ids.ts";
import type { LedgerView } from "../../ledger/ledger-view.ts";
import { scanTrees } from "../best/scan-trees.ts";
import { ANY_TREE, requestGroup } from "../request.ts";
import { KeptRequest } from "./kept-request.ts";

const [OLD, NEW] = [resourceClass("CUSTOM_OLD"), resourceClass("CUSTOM_NEW")];

function fits(view: LedgerView, kept: KeptRequest): number {
  const { rootCount } = view.slots;
  return scanTrees(kept.current(), 0, rootCount, new Int32Array(rootCount));
}

test("finds a class by its name after that class or another one has been renamed", () => {
  const view = viewOf(provider("a", { CUSTOM_OLD: 4 }));
  const kept = [OLD, NEW].map(
    (name) =>
      new KeptRequest(view, {
        groups: [requestGroup({ resources: new Map([[name, 1]]) })],
        groupPolicy: "none",
        trees: ANY_TREE,
        limit: 1,
      }),
  );
  expect(kept.map((one) => fits(view, one))).toEqual([1, 0]);
  view.apply({ kind: "class-renamed", from: OLD, to: NEW });
  expect(kept.map((one) => fits(view, one))).toEqual([0, 1]);
});
