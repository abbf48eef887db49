import { expect, test } from "vitest";
import { serverSpec, taskId } from "../../test/contract/cell-fixtures.ts";
import { volumeOf } from "../../test/rigs/begin-operation.ts";
import type { OperationKind } from "./operation-kinds.ts";
import { owedEnd } from "./owed-end.ts";
import type { TaskRecord } from "./task-record.ts";

const VOLUME = { ...volumeOf(1), replacedBy: volumeOf(2).volumeId };

function record(kind: OperationKind, stage: string, volume = VOLUME): TaskRecord {
  const value = {
    ...{
      kind,
      statusBefore: "ACTIVE",
      before: serverSpec(1),
      selections: [],
      source: undefined,
      destination: undefined,
    },
    ...{ migrationUuid: "", fenceWaived: false, rescueImage: undefined, snapshot: undefined, volume },
  };
  return {
    ...{ task: { id: taskId(1), server: serverSpec(1), work: { $case: "operate", value } }, kind: "operate" },
    ...{ createdAtMs: 1, endedAtMs: 2, outcome: "cancelled", stage, reason: "", takings: [], stages: [] },
  };
}

test.each([
  ["complete", [record("swap-volume", "completing")]],
  ["abandon", [record("swap-volume", "pivoting"), record("settle-volume", "calling-off")]],
  ["complete", [record("settle-volume-other", "completing"), record("hard-reboot", "powering")]],
  [null, [record("swap-volume", "pivoting")]],
  [null, [record("swap-volume", "completing"), record("settle-volume", "unpivoting")]],
  [null, [record("swap-volume", "completing", { ...VOLUME, replacedBy: volumeOf(3).volumeId })]],
  [null, [record("attach-volume", "completing")]],
  [null, []],
])("Cinder is owed the end that the last replacement of the volume has come to: %s", (end, tasks) => {
  expect(owedEnd(tasks, VOLUME)).toBe(end);
});
