import { describe, expect, test } from "vitest";
import { providerOf, serverSpec, taskId } from "../../test/contract/cell-fixtures.ts";
import { volumeOf } from "../../test/rigs/begin-operation.ts";
import { factsOf } from "./operation-facts.ts";
import { beginOperation, type OperationWorld, stepOperation } from "./operation-machine.ts";
import { firstStage } from "./operation-stages.ts";
import { volumesAfter } from "./server-volumes.ts";

const TASK = taskId(7);
const items = [{ provider: providerOf(0), resourceClass: "VCPU", amount: 1 }];
const VOLUME = volumeOf(1);
const OTHER = volumeOf(2);
type Kind = "attach-volume" | "detach-volume" | "attach-volume-offloaded" | "detach-volume-offloaded";

function worldOf(kind: Kind, other = OTHER): OperationWorld {
  const attaches = kind.startsWith("attach");
  const isOffloaded = kind.endsWith("offloaded");
  const before = serverSpec(1, { volumes: attaches ? [other] : [other, VOLUME] });
  const statusBefore = isOffloaded ? "SHELVED_OFFLOADED" : "ACTIVE";
  const value = {
    ...{ kind, statusBefore, before, selections: [], destination: undefined },
    source: isOffloaded ? undefined : { host: "host-0", attemptId: "b/0", allocation: { items, mappings: {} } },
    ...{ migrationUuid: "", fenceWaived: false, rescueImage: undefined, snapshot: undefined, volume: VOLUME },
  };
  const server = { ...before, volumes: volumesAfter(before.volumes, attaches, VOLUME) };
  return { facts: factsOf({ id: TASK, server, work: { $case: "operate", value } }), unseenMs: 5_000 };
}

function begin(world: OperationWorld) {
  const stage = firstStage(world.facts.kind);
  const position = { taskId: TASK, stage, step: 1, selection: 0, signal: null, revision: 1, reason: "" } as const;
  return beginOperation(world, position, []);
}

const ended = (outcome: "success" | "error", volumes: readonly unknown[] | undefined) => [
  { write: { outcome, server: { status: "ACTIVE", taskState: null, ...(volumes && { spec: { volumes } }) } } },
];

test("an attached volume is in the server's spec once its host has connected it, and once only", () => {
  const world = worldOf("attach-volume");
  const done = stepOperation(world, begin(world).state, { kind: "done", step: 1 });
  expect(done.effects).toMatchObject(ended("success", [OTHER, VOLUME]));
  expect(volumesAfter([VOLUME, OTHER], true, VOLUME)).toEqual([OTHER, VOLUME]);
});

test("a detached volume leaves the server's spec once its host has disconnected it", () => {
  const world = worldOf("detach-volume");
  const done = stepOperation(world, begin(world).state, { kind: "done", step: 1 });
  expect(done.effects).toMatchObject(ended("success", [OTHER]));
});

test.each([
  ["attach-volume-offloaded", [OTHER, VOLUME]],
  ["detach-volume-offloaded", [OTHER]],
] as const)("%s asks no host, and ends with the spec alone changed", (kind, volumes) => {
  const { effects } = begin(worldOf(kind));
  expect(effects).toMatchObject([
    { kind: "commit", write: { outcome: "success", change: null, migration: null, attempts: [] } },
  ]);
  expect(effects).toMatchObject([
    { write: { server: { status: "SHELVED_OFFLOADED", taskState: null, spec: { volumes } } } },
  ]);
  expect(effects).toMatchObject([{ write: { server: { home: undefined } } }]);
});

test("a server's spec has the new size of a volume that has grown, once its host has said so", () => {
  const grown = { ...VOLUME, sizeBytes: 2 * VOLUME.sizeBytes };
  const before = serverSpec(1, { volumes: [OTHER, VOLUME] });
  const value = {
    ...{ kind: "extend-volume", statusBefore: "ACTIVE", before, selections: [], destination: undefined },
    source: { host: "host-0", attemptId: "b/0", allocation: { items, mappings: {} } },
    ...{ migrationUuid: "", fenceWaived: false, rescueImage: undefined, snapshot: undefined, volume: grown },
  };
  const server = { ...before, volumes: volumesAfter(before.volumes, true, grown) };
  const world = { facts: factsOf({ id: TASK, server, work: { $case: "operate", value } }), unseenMs: 5_000 };
  const done = stepOperation(world, begin(world).state, { kind: "done", step: 1 });
  expect(done.effects).toMatchObject(ended("success", [OTHER, grown]));
  const gone = stepOperation(world, begin(world).state, { kind: "gone", step: 1, reason: "away" });
  expect(gone.effects).toMatchObject(ended("error", undefined));
});

test("a volume that could not be attached is disconnected, before the operation ends without it", () => {
  const world = worldOf("attach-volume");
  const failed = stepOperation(world, begin(world).state, { kind: "failed", step: 1, reason: "broken", final: false });
  const undoing = stepOperation(world, failed.state, { kind: "committed", step: 1, revision: 2 });
  expect(undoing.effects).toMatchObject([{ kind: "ask", ask: "undo-attach", step: 2 }]);
  const undone = stepOperation(world, undoing.state, { kind: "done", step: 2 });
  expect(undone.effects).toMatchObject([
    { write: { outcome: "error", server: { status: "ACTIVE", fault: "broken" } } },
  ]);
  expect(undone.effects).not.toMatchObject([{ write: { server: { spec: expect.anything() } } }]);
});

test("a volume that may be connected stays with its server when the server's host is fenced or its state is unknown", () => {
  const world = worldOf("attach-volume");
  const asked = begin(world);
  const fenced = stepOperation(world, asked.state, { kind: "host-fenced", step: 1, reason: "forced down" });
  expect(fenced.effects).toMatchObject(ended("success", [OTHER, VOLUME]));
  const failed = stepOperation(world, asked.state, { kind: "failed", step: 1, reason: "broken", final: false });
  const undoing = stepOperation(world, failed.state, { kind: "committed", step: 1, revision: 2 });
  const lost = stepOperation(world, undoing.state, { kind: "forgotten", step: 2, reason: "lost commits" });
  expect(lost.effects).toMatchObject([{ write: { server: { status: "ERROR", spec: { volumes: [OTHER, VOLUME] } } } }]);
  const kept = worldOf("detach-volume");
  const detaching = stepOperation(kept, begin(kept).state, { kind: "host-fenced", step: 1, reason: "forced down" });
  expect(detaching.effects).toMatchObject(ended("error", undefined));
  expect(detaching.effects).not.toMatchObject([{ write: { server: { spec: expect.anything() } } }]);
});

test.each(["attach-volume", "detach-volume"] as const)("%s waits for a host that is silent, and says so", (kind) => {
  const world = worldOf(kind);
  const waiting = stepOperation(world, begin(world).state, { kind: "gone", step: 1, reason: "away" });
  const note = expect.stringMatching(/^Waiting: host-0 was ordered to (at|de)tach a volume, but is silent\./);
  expect(waiting.effects).toMatchObject([{ kind: "commit" }, { kind: "tell-wait", note }]);
  const back = stepOperation(world, waiting.state, { kind: "committed", step: 1, revision: 2 });
  expect(back.effects).toMatchObject([{ kind: "ask", ask: kind }]);
});

/** A guest that runs is to use volume 3 in the place of its volume, and has another volume besides. */
function swapping(other = OTHER) {
  const volume = { ...VOLUME, replacedBy: volumeOf(3).volumeId };
  const before = serverSpec(1, { volumes: [other, VOLUME] });
  const value = {
    ...{ kind: "swap-volume", statusBefore: "ACTIVE", before, selections: [], destination: undefined },
    source: { host: "host-0", attemptId: "b/0", allocation: { items, mappings: {} } },
    ...{ migrationUuid: "", fenceWaived: false, rescueImage: undefined, snapshot: undefined, volume },
  };
  const server = { ...before, volumes: volumesAfter(before.volumes, true, volume) };
  const world = { facts: factsOf({ id: TASK, server, work: { $case: "operate", value } }), unseenMs: 5_000 };
  const mirrored = stepOperation(world, begin(world).state, { kind: "done", step: 1 });
  const pivoting = stepOperation(world, mirrored.state, { kind: "committed", step: 1, revision: 2 });
  expect(pivoting.effects).toMatchObject([{ kind: "ask", ask: "pivot-volume", step: 2 }]);
  return { world, pivoting, volume };
}

/** A volume of which nobody knows whether the guest uses it or volume 4. */
const DOUBTFUL = { ...OTHER, replacedBy: volumeOf(4).volumeId };

test("both volumes stay with a server whose host is fenced before it says whether the guest has changed over", () => {
  const { world, pivoting, volume } = swapping();
  const fenced = stepOperation(world, pivoting.state, { kind: "host-fenced", step: 2, reason: "forced down" });
  expect(fenced.effects).toMatchObject([
    { write: { outcome: "error", server: { status: "ERROR", spec: { volumes: [OTHER, volume] } } } },
  ]);
});

test("a replacement waits for Cinder, says so, and ends with the volume's own id, while another volume stays in doubt", () => {
  const { world, pivoting } = swapping(DOUBTFUL);
  const pivoted = stepOperation(world, pivoting.state, { kind: "done", step: 2 });
  const completing = stepOperation(world, pivoted.state, { kind: "committed", step: 2, revision: 3 });
  expect(completing.effects).toMatchObject([{ kind: "ask", ask: "leave-replaced", step: 3 }]);
  const left = stepOperation(world, completing.state, { kind: "done", step: 3 });
  const exchanging = stepOperation(world, left.state, { kind: "committed", step: 3, revision: 4 });
  expect(exchanging.effects).toMatchObject([{ kind: "ask", ask: "complete-replacement", step: 4 }]);
  const silence = { kind: "failed", step: 4, reason: "Cinder does not answer", final: false } as const;
  const waiting = stepOperation(world, exchanging.state, silence);
  const note =
    "Waiting: Cinder was asked to let the other volume take the place of the server's volume, but has not: Cinder does not answer.";
  expect(waiting.effects).toMatchObject([{ kind: "commit" }, { kind: "tell-wait", note }]);
  const done = stepOperation(world, exchanging.state, { kind: "done", step: 4 });
  expect(done.effects).toMatchObject(ended("success", [DOUBTFUL, VOLUME]));
});

test.each(["attach-volume", "detach-volume"] as const)(
  "%s leaves it open which volume the guest uses in the place of another one, so that no other host guesses",
  (kind) => {
    const world = worldOf(kind, DOUBTFUL);
    const done = stepOperation(world, begin(world).state, { kind: "done", step: 1 });
    expect(done.effects).toMatchObject(ended("success", kind === "attach-volume" ? [DOUBTFUL, VOLUME] : [DOUBTFUL]));
  },
);

describe("a volume of which nobody knows whether the guest uses it", () => {
  const doubtful = { ...VOLUME, replacedBy: volumeOf(3).volumeId };
  function settling(kind: "settle-volume" | "settle-volume-own" | "settle-volume-other") {
    const before = serverSpec(1, { volumes: [doubtful, OTHER] });
    const value = {
      ...{ kind, statusBefore: "ERROR", before, selections: [], destination: undefined },
      source: { host: "host-0", attemptId: "b/0", allocation: { items, mappings: {} } },
      ...{ migrationUuid: "", fenceWaived: false, rescueImage: undefined, snapshot: undefined, volume: doubtful },
    };
    const server = { ...before, volumes: volumesAfter(before.volumes, true, doubtful) };
    const world = { facts: factsOf({ id: TASK, server, work: { $case: "operate", value } }), unseenMs: 5_000 };
    return { world, begun: begin(world) };
  }
  type Settled = ReturnType<typeof settling>;
  const next = (world: Settled["world"], state: Settled["begun"]["state"], step: number) =>
    stepOperation(world, state, { kind: "committed", step, revision: step + 1 });
  const settledSpec = [
    { write: { outcome: "success", server: { status: "ERROR", spec: { volumes: [OTHER, VOLUME] } } } },
  ];

  test("is settled by its host's word, that the guest uses its own one: Cinder drops the other one", () => {
    const { world, begun } = settling("settle-volume");
    expect(begun.effects).toMatchObject([{ kind: "ask", ask: "keep-volume" }]);
    const kept = next(world, stepOperation(world, begun.state, { kind: "done", step: 1 }).state, 1);
    expect(kept.effects).toMatchObject([{ kind: "ask", ask: "abandon-replacement", step: 2 }]);
    expect(stepOperation(world, kept.state, { kind: "done", step: 2 }).effects).toMatchObject(settledSpec);
  });

  test("is settled by its host's word, that the guest uses the other one: Cinder gives that one the volume's id", () => {
    const { world, begun } = settling("settle-volume");
    const refused = { kind: "failed", step: 1, reason: "it uses the other one", final: false } as const;
    const pivoting = next(world, stepOperation(world, begun.state, refused).state, 1);
    expect(pivoting.effects).toMatchObject([{ kind: "ask", ask: "pivot-volume", step: 2 }]);
    const completing = next(world, stepOperation(world, pivoting.state, { kind: "done", step: 2 }).state, 2);
    expect(completing.effects).toMatchObject([{ kind: "ask", ask: "leave-replaced", step: 3 }]);
    const exchanging = next(world, stepOperation(world, completing.state, { kind: "done", step: 3 }).state, 3);
    expect(exchanging.effects).toMatchObject([{ kind: "ask", ask: "complete-replacement", step: 4 }]);
    expect(stepOperation(world, exchanging.state, { kind: "done", step: 4 }).effects).toMatchObject(settledSpec);
  });

  test("stays in doubt when its host says neither, is forced down, or falls silent", () => {
    const { world, begun } = settling("settle-volume");
    const unchanged = [{ write: { outcome: "error", server: { status: "ERROR", spec: undefined } } }];
    const broken = { kind: "failed", reason: "it is broken", final: false } as const;
    const pivoting = next(world, stepOperation(world, begun.state, { ...broken, step: 1 }).state, 1);
    expect(stepOperation(world, pivoting.state, { ...broken, step: 2 }).effects).toMatchObject(unchanged);
    const fenced = { kind: "host-fenced", step: 1, reason: "forced down" } as const;
    expect(stepOperation(world, begun.state, fenced).effects).toMatchObject(unchanged);
    const silent = stepOperation(world, begun.state, { kind: "gone", step: 1, reason: "away" });
    expect(silent.effects).toMatchObject([{ kind: "commit", write: { outcome: null } }, { kind: "tell-wait" }]);
  });

  test.each([
    ["settle-volume-own", "abandon-replacement"],
    ["settle-volume-other", "leave-replaced"],
  ] as const)("is settled by an operator's word without its host (%s), unless Cinder does not agree", (kind, ask) => {
    const { world, begun } = settling(kind);
    expect(world.facts.source?.host).toBe("host-0");
    expect(begun.effects).toMatchObject([{ kind: "ask", ask }]);
    const done = stepOperation(world, begun.state, { kind: "done", step: 1 });
    const end =
      ask === "leave-replaced"
        ? stepOperation(world, next(world, done.state, 1).state, { kind: "done", step: 2 })
        : done;
    expect(end.effects).toMatchObject(settledSpec);
    const refused = { kind: "failed", step: 1, reason: "Cinder no longer migrates it", final: true } as const;
    expect(stepOperation(world, begun.state, refused).effects).toMatchObject([
      {
        write: {
          outcome: "error",
          server: { status: "ERROR", fault: "Cinder no longer migrates it", spec: undefined },
        },
      },
    ]);
  });
});
