import { expect, test } from "vitest";
import type { OperationFacts, PlaceOf } from "../../core/tasks/operation-facts.ts";
import type { OperationKind } from "../../core/tasks/operation-kinds.ts";
import type { GuestLook } from "../../core/tasks/refused-order.ts";
import type { LookedAt } from "./guest-looker.ts";
import { lackedAtSource, meaningOfRefusal } from "./read-refusal.ts";

const source: PlaceOf = { host: "host-1", attemptId: "build/0", items: [] };
const destination: PlaceOf = { host: "host-2", attemptId: "move/0", items: [] };
const facts = {
  kind: "resize",
  after: { uuid: "server" },
  source,
  destination,
} as Partial<OperationFacts> as OperationFacts;
const handOver = {
  kind: "ask",
  ask: "hand-over",
  stage: "handing-over",
  step: 4,
  revision: 7,
  selection: 0,
  force: false,
  isRecalled: false,
  isEmptied: false,
  place: source,
  tries: 1,
  failed: "no luck",
  lacksContent: false,
  guestMissing: false,
} as const;
const looking = (lookAt: (host: string) => GuestLook, seen: "seen" | "unseen" | "released" = "unseen") => ({
  look: async ({ host }: LookedAt) => lookAt(host),
  seek: async () => seen,
});
/** The source has stopped, by an order that is not later than the one that it has refused. */
const stopped: GuestLook = { kind: "found", state: "stopped", revision: 5 };

test.each<[string, GuestLook, unknown]>([
  ["runs", { kind: "found", state: "running", revision: 3 }, { kind: "arrived", step: 4 }],
  ["has run and is stopped", { kind: "found", state: "stopped", revision: 3 }, { kind: "forgotten", step: 4 }],
  ["has never run", { kind: "found", state: "prepared", revision: 0 }, "plain"],
  ["is not there", { kind: "absent" }, "plain"],
  ["does not answer", { kind: "silent" }, "plain"],
])("a refused hand-over to a guest that %s", async (_, there, meaning) => {
  const guests = looking((host) => (host === source.host ? stopped : there));
  const found = await meaningOfRefusal(facts, handOver, guests);
  if (typeof meaning === "string") expect(found).toBe(meaning);
  else expect(found).toMatchObject(meaning as object);
});

test.each([
  ["start-source", 7, "unclear"],
  ["start-destination", 7, "unclear"],
  ["start-destination", 8, { kind: "done", step: 4 }],
] as const)(
  "a guest that runs by the order %s that was to leave it paused, and has obeyed order %d, has not obeyed this one",
  async (ask, revision, meaning) => {
    const guests = looking(() => ({ kind: "found", state: "running", revision }));
    const asked = { ...handOver, ask, place: destination };
    expect(await meaningOfRefusal({ ...facts, pauses: true }, asked, guests)).toEqual(meaning);
    expect(await meaningOfRefusal({ ...facts, pauses: false }, asked, guests)).toEqual({ kind: "done", step: 4 });
  },
);

test.each([
  [6, "unclear"],
  [7, { kind: "done", step: 4 }],
] as const)(
  "a guest that was to be paused and still runs when it was asked %d times has obeyed a forgotten order of the same revision, or not yet",
  async (tries, meaning) => {
    const guests = looking(() => ({ kind: "found", state: "running", revision: 7 }));
    const asked = {
      ...handOver,
      ask: "start-source",
      stage: "recalling",
      tries,
      failed: "a later order was given",
    } as const;
    expect(await meaningOfRefusal({ ...facts, pauses: true }, asked, guests)).toEqual(meaning);
  },
);

const absent: GuestLook = { kind: "absent" };
const prepared: GuestLook = { kind: "found", state: "prepared", revision: 0 };
const arrived = { kind: "arrived", step: 4 };
const stranded = {
  ...{ kind: "stranded", step: 4 },
  reason: expect.stringMatching(/^host-1 no longer has the guest .* host-2 does not go on: no luck\. .* is kept/),
};
test.each<[OperationKind, GuestLook, unknown]>([
  ["live-migrate", prepared, arrived],
  ["live-migrate-paused", prepared, arrived],
  ["resize", prepared, stranded],
  ["migrate", prepared, stranded],
  ["rebuild", prepared, "plain"],
  ["live-migrate", absent, "plain"],
  ["migrate", absent, "plain"],
  ["live-migrate", { kind: "silent" }, "empty"],
])("a %s whose source has no guest, while that of the destination is %j", async (kind, there, meaning) => {
  const guests = looking((host) => (host === source.host ? absent : there));
  expect(await meaningOfRefusal({ ...facts, kind }, handOver, guests)).toEqual(meaning);
});

const outdated = {
  ...{ kind: "stranded", step: 4 },
  reason: expect.stringMatching(/^host-1 was told to go on .* no longer has the guest\. .* host-2 is older/),
};
const running: GuestLook = { kind: "found", state: "running", revision: 3 };
test.each<[GuestLook, GuestLook, unknown]>([
  [absent, prepared, arrived],
  [absent, absent, "plain"],
  [absent, { kind: "silent" }, "empty"],
  [stopped, prepared, "plain"],
  [stopped, running, arrived],
  [{ kind: "silent" }, prepared, "unclear"],
  [{ kind: "found", state: "running", revision: 7 }, prepared, { kind: "done", step: 4 }],
])(
  "a source that does not go on after an abort, and is %j, while the destination is %j",
  async (here, there, meaning) => {
    const guests = looking((host) => (host === source.host ? here : there));
    const asked = { ...handOver, ask: "start-source", stage: "recalling" } as const;
    expect(await meaningOfRefusal({ ...facts, kind: "live-migrate" }, asked, guests)).toEqual(meaning);
  },
);

test.each<[GuestLook, number, unknown]>([
  [prepared, 1, outdated],
  [{ kind: "silent" }, 8, "empty"],
  [{ kind: "silent" }, 9, outdated],
  [running, 1, arrived],
  [absent, 1, "plain"],
])(
  "a source that may have gone on after an abort before it lost its guest, while the destination is %j",
  async (there, tries, meaning) => {
    const guests = looking((host) => (host === source.host ? absent : there));
    const asked = { ...handOver, ask: "start-source", stage: "recalling", isRecalled: true, tries } as const;
    expect(await meaningOfRefusal({ ...facts, kind: "live-migrate" }, asked, guests)).toEqual(meaning);
  },
);

test.each<[OperationKind, number, unknown]>([
  ["migrate", 8, "empty"],
  [
    "migrate",
    9,
    { ...stranded, reason: expect.stringMatching(/host-2 does not go on: host-2 is silent\. .* is kept/) },
  ],
  ["live-migrate", 8, "empty"],
  [
    "live-migrate",
    9,
    { kind: "kept", step: 4, cause: "empty: host- is silent", reason: expect.stringContaining("host-2 is silent") },
  ],
  ["rebuild", 9, "unclear"],
])(
  "a %s whose source says for the %dth time that it has no guest, while the destination is silent",
  async (kind, tries, meaning) => {
    const guests = looking((host) => (host === source.host ? absent : { kind: "silent" }));
    expect(await meaningOfRefusal({ ...facts, kind }, { ...handOver, tries }, guests)).toEqual(meaning);
  },
);

const done = { kind: "done", step: 4 };
test.each<[OperationKind, GuestLook, GuestLook, boolean, unknown]>([
  ["rebuild", absent, prepared, true, done],
  ["reimage", absent, prepared, true, done],
  // The agent's journal knows the guest that its driver has lost.
  ["rebuild", { kind: "found", state: "running", revision: 3 }, prepared, true, done],
  ["rebuild", absent, prepared, false, "plain"],
  ["rebuild", absent, absent, true, "plain"],
  ["rebuild", absent, { kind: "silent" }, true, "unclear"],
  ["rebuild", stopped, { kind: "silent" }, true, "unclear"],
  ["resize", absent, prepared, true, { kind: "stranded" }],
  ["resize", stopped, prepared, true, "plain"],
  // Its guest runs on another host because of a forgotten order.
  ["rebuild", { kind: "found", state: "stopped", revision: 9 }, prepared, true, { kind: "forgotten" }],
])(
  "a %s whose source is %j and whose destination is %j, when the host says that it has lost the guest: %s",
  async (kind, there, arrived, guestMissing, meaning) => {
    const own = { ...destination, host: source.host };
    const guests = {
      ...looking(() => arrived),
      look: async ({ attemptId }: LookedAt) => (attemptId === source.attemptId ? there : arrived),
    };
    const found = await meaningOfRefusal(
      { ...facts, kind, destination: own },
      { ...handOver, place: source, guestMissing },
      guests,
    );
    if (typeof meaning === "string") expect(found).toBe(meaning);
    else expect(found).toMatchObject(meaning as object);
  },
);

const silent: GuestLook = { kind: "silent" };
const kept = (cause: string, told: string) => ({
  ...{ kind: "kept", step: 4, cause },
  reason: expect.stringMatching(new RegExp(`^Waiting: host-2 .* cannot: no luck\\. ${told}, .* host-2 is kept`)),
});
const unheard = kept("silent: no luck", "host-1 is silent");
const alone = kept("absent: no luck", "host-1 no longer has the guest of this server");
test.each<[OperationKind, GuestLook, unknown, { tries?: number; lacksContent?: true }]>([
  ["live-migrate", absent, "unclear", { tries: 5 }],
  ["live-migrate", absent, alone, { tries: 6 }],
  ["resize", absent, alone, { tries: 6 }],
  ["rebuild", absent, "plain", {}],
  ["live-migrate", stopped, "plain", {}],
  ["live-migrate", absent, stranded, { tries: 6, lacksContent: true }],
  ["live-migrate", silent, "unclear", { tries: 5 }],
  ["live-migrate", silent, unheard, { tries: 6 }],
  ["live-migrate", silent, "unclear", { tries: 5, lacksContent: true }],
  ["live-migrate", silent, "plain", { tries: 6, lacksContent: true }],
  ["migrate", silent, unheard, { tries: 6 }],
  ["migrate", silent, "plain", { tries: 6, lacksContent: true }],
  ["rebuild", silent, "plain", {}],
])("a destination of a %s that does not start, while the source's guest is %j", async (kind, there, meaning, how) => {
  const guests = looking((host) => (host === source.host ? there : prepared));
  const asked = { ...handOver, ask: "start-destination", place: destination, ...how } as const;
  expect(await meaningOfRefusal({ ...facts, kind }, asked, guests)).toEqual(meaning);
});

test("a source that keeps a guest without a volume of the server is not reverted to, and only its own word counts", () => {
  const volumes = ["v1", "v2", "v3"].map((volumeId) => ({ volumeId }));
  const reverting = { ...facts, kind: "revert", after: { uuid: "server", volumes } } as unknown as OperationFacts;
  const lacked = (volumeIds: readonly string[] | null, ask: "check-source" | "check-destination" = "check-source") =>
    lackedAtSource(reverting, { ask }, { volumes: volumeIds === null ? undefined : { volumeIds: [...volumeIds] } });
  expect(lacked(["v2"])).toMatch(/^The guest that host-1 keeps for a revert lacks the volumes v1, v3 of the server/);
  expect(lacked(["v3", "v1"])).toMatch(/lacks volume v2 .* Confirm the move, or have the guest connected/);
  // Further volumes may be those of a detachment in which the source was forced down.
  expect([lacked(["v4", "v3", "v2", "v1"]), lacked(null), lacked([], "check-destination")]).toEqual(["", "", ""]);
});
