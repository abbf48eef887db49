import { expect, test } from "vitest";
import { serverSpec, taskId } from "../../test/contract/cell-fixtures.ts";
import { volumeOf } from "../../test/rigs/begin-operation.ts";
import type { OperationKind } from "./operation-kinds.ts";
import { owedReplacement } from "./owed-replacement.ts";
import type { TaskOutcome, TaskRecord } from "./task-record.ts";

const VOLUME = { ...volumeOf(1), replacedBy: volumeOf(2).volumeId };
const { volumeId } = VOLUME;

function record(kind: OperationKind, stage: string, volume = VOLUME, outcome: TaskOutcome = "cancelled"): TaskRecord {
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
    ...{ createdAtMs: 1, endedAtMs: 2, outcome, stage, reason: "", takings: [], stages: [] },
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
])("Cinder is owed the end that the last replacement of a volume in doubt has come to: %s", (end, tasks) => {
  expect(owedReplacement(tasks, volumeId, VOLUME)).toEqual({ volume: VOLUME, end });
});

test("it is known that Cinder may have been asked already to complete the migration", () => {
  const owed = owedReplacement([record("swap-volume", "exchanging")], volumeId, VOLUME);
  expect(owed).toEqual({ volume: VOLUME, end: "complete", hasLeft: true });
});

test.each(["mirroring", "detaching-kept", "unmirroring", "calling-off"])(
  "a replacement that the deletion has broken off at %s has failed, since the guest has used its own volume",
  (stage) => {
    const tasks = [record("swap-volume", stage), record("hard-reboot", "powering")];
    expect(owedReplacement(tasks, volumeId, undefined)).toEqual({ volume: VOLUME, end: "abandon" });
  },
);

test.each(["pivoting", "unpivoting"])("nobody knows how a replacement ends that was broken off at %s", (stage) => {
  expect(owedReplacement([record("swap-volume", stage)], volumeId, undefined)).toEqual({ volume: VOLUME, end: null });
});

test.each<[string, readonly TaskRecord[]]>([
  ["has no replacement", []],
  ["has another volume's", [record("swap-volume", "mirroring", { ...VOLUME, ...volumeOf(3) })]],
  ["was replaced", [record("swap-volume", "completing", VOLUME, "success")]],
  [
    "was not replaced at last",
    [record("swap-volume", "mirroring"), record("swap-volume", "calling-off", VOLUME, "error")],
  ],
  ["lacked it on the source of a move alone", [record("swap-volume-unconfirmed", "returning-kept")]],
])("nothing is owed of a volume whose server %s", (_, tasks) => {
  expect(owedReplacement(tasks, volumeId, undefined)).toBeNull();
});
