import { describe, expect, test } from "vitest";
import { providerOf, serverSpec, taskId } from "../../test/contract/cell-fixtures.ts";
import { volumeOf } from "../../test/rigs/begin-operation.ts";
import { factsOf } from "./operation-facts.ts";
import { beginOperation, type OperationWorld, stepOperation } from "./operation-machine.ts";
import type { Stage } from "./operation-routes.ts";
import { planOperation } from "./plan-operation.ts";
import { filesOf } from "./server-volumes.ts";

const TASK = taskId(7);
const FORMER = { ...volumeOf(1), inCinder: true, file: "former" };
const PRESENT = { ...FORMER, file: "present" };
const SNAPSHOT = { snapshotId: "s", newFile: "present", fileToMerge: "", mergeTarget: "" };
const items = [{ provider: providerOf(0), resourceClass: "VCPU", amount: 1 }];
type Answer = "done" | "failed" | "gone" | "host-fenced";

type Kind = "snapshot-volume" | "resume-snapshot" | "merge-volume";

function worldOf(kind: Kind): OperationWorld {
  const before = serverSpec(1, { volumes: [FORMER] });
  const volume = kind === "merge-volume" ? FORMER : PRESENT;
  const value = {
    ...{ kind, statusBefore: "ACTIVE", before, selections: [], destination: undefined, migrationUuid: "" },
    source: { host: "host-0", attemptId: "b/0", allocation: { items, mappings: {} } },
    ...{ fenceWaived: false, rescueImage: undefined, volume, snapshot: SNAPSHOT },
  };
  const server = kind === "merge-volume" ? before : { ...before, volumes: [PRESENT] };
  return { facts: factsOf({ id: TASK, server, work: { $case: "operate", value } }), unseenMs: 5_000 };
}

/** The write after an answer at a stage. */
function writeAfter(kind: Kind, stage: Stage, answer: Answer) {
  const world = worldOf(kind);
  const position = { taskId: TASK, stage, step: 2, selection: 0, signal: null, revision: 1, reason: "" } as const;
  const asked = beginOperation(world, position, []);
  const event = { kind: answer, step: 2, reason: "why", final: false } as const;
  const [effect] = stepOperation(world, asked.state, event).effects;
  if (effect?.kind !== "commit") throw new Error("nothing is written");
  const { outcome, server } = effect.write;
  const files = server.spec === undefined ? null : filesOf(server.spec).map(({ file }) => file);
  return [effect.write.stage ?? outcome, server.status ?? null, files];
}

describe("a snapshot of a volume that a guest uses", () => {
  test.each([
    ["switching", "done", ["announcing", null, null]],
    ["switching", "failed", ["returning", null, null]],
    ["switching", "gone", ["switching", null, null]],
    // Whatever the guest has written is in the new file, or beneath it.
    ["switching", "host-fenced", ["announcing", null, null]],
    ["announcing", "done", ["success", "ACTIVE", ["present"]]],
    ["announcing", "failed", ["returning", null, null]],
    ["announcing", "gone", ["announcing", null, null]],
    ["returning", "done", ["denying", null, null]],
    ["returning", "failed", ["returning", null, null]],
    ["returning", "gone", ["returning", null, null]],
    ["returning", "host-fenced", ["error", "ERROR", ["present"]]],
    ["denying", "done", ["error", "ACTIVE", null]],
    ["denying", "gone", ["denying", null, null]],
  ] as const)("that is %s goes on when its host or Cinder is %s", (stage, answer, written) => {
    expect(writeAfter("snapshot-volume", stage, answer)).toEqual(written);
  });

  test.each([
    ["announcing", "done", ["success", "ACTIVE", ["present"]]],
    ["announcing", "failed", ["returning", null, null]],
    ["announcing", "gone", ["announcing", null, null]],
    ["returning", "done", ["denying", null, null]],
    ["returning", "host-fenced", ["error", "ERROR", ["present"]]],
    ["denying", "done", ["error", "ACTIVE", ["former"]]],
  ] as const)(
    "and that a database has forgotten, at %s, goes on when its host or Cinder is %s",
    (stage, answer, written) => {
      expect(writeAfter("resume-snapshot", stage, answer)).toEqual(written);
    },
  );

  test("and that a database has forgotten has its file in the spec as soon as it goes on", () => {
    const spec = serverSpec(1, { volumes: [FORMER] });
    const home = { host: "host-0", attemptId: "b/0", status: "ACTIVE", taskState: null, revision: 1 };
    const planned = planOperation({
      ...{ taskId: TASK, kind: "resume-snapshot", holding: null, volume: PRESENT, snapshot: SNAPSHOT },
      server: { uuid: spec.uuid, spec, ...home } as never,
    });
    const server = { spec: { volumes: [{ file: "present" }] }, taskState: "snapshotting_volume" };
    expect(planned).toMatchObject({ begin: { write: { stage: "announcing", server } } });
  });

  test.each([
    ["merging", "done", "announcing"],
    ["merging", "failed", "denying"],
    ["merging", "gone", "merging"],
    // Cinder keeps all files, since nobody knows whether they are merged.
    ["merging", "host-fenced", "denying"],
    ["announcing", "done", "success"],
    ["announcing", "failed", "error"],
    ["denying", "done", "error"],
  ] as const)("and is deleted, at %s, goes on when its host or Cinder is %s", (stage, answer, to) => {
    const [target, , files] = writeAfter("merge-volume", stage, answer);
    expect([target, files]).toEqual([to, null]);
  });

  test("counts no longer when the server gets its next host from nowhere, since Cinder makes snapshots alone then", () => {
    const spec = serverSpec(1, { volumes: [PRESENT] });
    const server = { uuid: spec.uuid, spec, host: null, attemptId: null, status: "SHELVED_OFFLOADED", taskState: null };
    const selections = [
      { host: "host-1", rootProvider: "", availabilityZone: "", allocation: { items, mappings: {} } },
    ];
    const planned = planOperation({
      ...{ taskId: TASK, kind: "unshelve", holding: null, selections },
      server: { ...server, revision: 1 } as never,
    });
    expect(planned).toMatchObject({ begin: { task: { server: { volumes: [{ file: "" }] } } } });
  });
});
