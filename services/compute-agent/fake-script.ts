import { createHash } from "node:crypto";
import type { Static } from "typebox";
import { firstFault } from "../../runtime/first-fault.ts";
import { PlainType } from "../../runtime/plain-type.ts";

/**
 * How the fake driver behaves. A script in a host's configuration applies to all builds on that host. A script in a server's metadata, as
 * JSON under `berth:fake`, applies to that server on every host and overrides the host's. The metadata counts only where the agent's
 * settings allow it, since the server's owner writes it.
 */
export const FakeScript = PlainType.Object(
  {
    /** The duration of a build, whatever its outcome. */
    duration_ms: PlainType.Optional(PlainType.Number({ minimum: 0, maximum: 3_600_000 })),
    /** Steps that are reported during the build, at equal distances. */
    steps: PlainType.Optional(PlainType.Array(PlainType.String(), { maxItems: 20 })),
    /**
     * The outcome of a build, `prepared` by default. `reschedule` and `abort` fail, and `abort` is final. `hang` never ends by itself.
     * `crash` ends the agent's process during the build. `lie` drops all connections during the build, and then reports a guest as failed
     * that exists.
     */
    outcome: PlainType.Optional(PlainType.Enum(["prepared", "reschedule", "abort", "hang", "crash", "lie"])),
    /** The reason that a failure reports. */
    reason: PlainType.Optional(PlainType.String({ maxLength: 2_000 })),
    /** The share of builds that get `outcome`. The others are prepared. The attempt id and the seed decide which ones. */
    probability: PlainType.Optional(PlainType.Number({ minimum: 0, maximum: 1 })),
    /**
     * Only this many first builds get `outcome`: the first builds of a host since the agent started, or the first selections of a server.
     */
    first: PlainType.Optional(PlainType.Integer({ minimum: 0 })),
    /** Whether guests stop when the agent's process ends, because the host loses its power with it. */
    loses_power: PlainType.Optional(PlainType.Boolean()),
    /** How long it takes to start a guest for the first time, to change its power later, to remove it, and to hand it over. */
    start_ms: PlainType.Optional(PlainType.Number({ minimum: 0, maximum: 3_600_000 })),
    power_ms: PlainType.Optional(PlainType.Number({ minimum: 0, maximum: 3_600_000 })),
    destroy_ms: PlainType.Optional(PlainType.Number({ minimum: 0, maximum: 3_600_000 })),
    hand_off_ms: PlainType.Optional(PlainType.Number({ minimum: 0, maximum: 3_600_000 })),
    /** How long it takes to boot a guest from a rescue image. */
    rescue_ms: PlainType.Optional(PlainType.Number({ minimum: 0, maximum: 3_600_000 })),
    /** How long it takes to copy a guest's disk into an image. */
    snapshot_ms: PlainType.Optional(PlainType.Number({ minimum: 0, maximum: 3_600_000 })),
    /** How long it takes to connect a volume to a guest, and to disconnect it. */
    attach_ms: PlainType.Optional(PlainType.Number({ minimum: 0, maximum: 3_600_000 })),
    detach_ms: PlainType.Optional(PlainType.Number({ minimum: 0, maximum: 3_600_000 })),
    /** How long each step of the replacement of a volume takes, and how many first steps fail that copy a volume or use the copy. */
    replace_ms: PlainType.Optional(PlainType.Number({ minimum: 0, maximum: 3_600_000 })),
    replace_failures: PlainType.Optional(PlainType.Integer({ minimum: 0 })),
    /** The time after which guests stop on their own, as if their owner had shut them down, or because they crash. */
    ends_after_ms: PlainType.Optional(PlainType.Number({ minimum: 0, maximum: 3_600_000 })),
    ends_by: PlainType.Optional(PlainType.Enum(["shut-down", "crashed"])),
    /** Only this many first runs of each guest end by themselves. One by default. */
    ends_first: PlainType.Optional(PlainType.Integer({ minimum: 0 })),
    /**
     * For each kind of order, the number of first orders of each guest that fail: hand-offs, starts, power changes, rescues (which leave
     * the guest stopped), snapshots, and attachments (which connect the volume all the same) and detachments of volumes.
     */
    hand_off_failures: PlainType.Optional(PlainType.Integer({ minimum: 0 })),
    start_failures: PlainType.Optional(PlainType.Integer({ minimum: 0 })),
    power_failures: PlainType.Optional(PlainType.Integer({ minimum: 0 })),
    rescue_failures: PlainType.Optional(PlainType.Integer({ minimum: 0 })),
    snapshot_failures: PlainType.Optional(PlainType.Integer({ minimum: 0 })),
    attach_failures: PlainType.Optional(PlainType.Integer({ minimum: 0 })),
    detach_failures: PlainType.Optional(PlainType.Integer({ minimum: 0 })),
    /** How long it takes to change a guest's interfaces, and how many first changes fail, which leave the guest as it was. */
    interfaces_ms: PlainType.Optional(PlainType.Number({ minimum: 0, maximum: 3_600_000 })),
    interfaces_failures: PlainType.Optional(PlainType.Integer({ minimum: 0 })),
    /** How often removing the guest fails before it succeeds. */
    destroy_failures: PlainType.Optional(PlainType.Integer({ minimum: 0 })),
  },
  { additionalProperties: false },
);
export type FakeScript = Static<typeof FakeScript>;

/** The kinds of calls whose first ones a script may let fail. */
export type FailingCall = Exclude<Extract<keyof FakeScript, `${string}_failures`>, "destroy_failures">;
/** The kinds of calls whose duration a script may set. */
export type SlowCall = Exclude<Extract<keyof FakeScript, `${string}_ms`>, "duration_ms" | "ends_after_ms">;
export type FakeOutcome = NonNullable<FakeScript["outcome"]>;

/** Name of the metadata item with a server's own script. */
export const FAKE_METADATA_KEY = "berth:fake";

/** The script in a server's metadata, or null when there is none. Throws an Error that says what is wrong with it. */
export function scriptOf(metadata: Readonly<Record<string, string>>): FakeScript | null {
  const text = metadata[FAKE_METADATA_KEY];
  if (text === undefined) return null;
  try {
    return parseScript(text);
  } catch (error) {
    throw new Error(`metadata ${FAKE_METADATA_KEY}: ${(error as Error).message}`);
  }
}

/** Parses a script from JSON. Throws an Error that says what is wrong with it. */
export function parseScript(text: string): FakeScript {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw new Error("the text is not JSON");
  }
  const fault = firstFault(FakeScript, parsed);
  if (fault !== null) throw new Error(fault);
  return parsed as FakeScript;
}

/** The outcome of a host's build with this number. */
export function fakeOutcomeOf(
  { first = Number.POSITIVE_INFINITY, probability = 1, outcome = "prepared" }: FakeScript,
  { nth, attemptId, seed }: { readonly nth: number; readonly attemptId: string; readonly seed: number },
): FakeOutcome {
  return nth >= first || chanceOf(seed, attemptId) >= probability ? "prepared" : outcome;
}

/** A number in [0, 1) that the seed and the attempt determine. */
function chanceOf(seed: number, attemptId: string): number {
  return createHash("sha256").update(`${seed} ${attemptId}`).digest().readUInt32BE(0) / 2 ** 32;
}
