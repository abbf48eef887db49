import { createHash } from "node:crypto";
import { type Static, Type } from "typebox";
import { firstFault } from "./first-fault.ts";

/**
 * How the fake driver behaves. In a host's configuration it is for all builds on that host; in a server's metadata, as
 * JSON under `berth:fake`, for that server wherever it is built, and wins over the host's; the metadata only counts where the agent was
 * told so, since the server's owner writes it.
 */
export const FakeScript = Type.Object(
  {
    /** How long a build takes, whatever its outcome. */
    duration_ms: Type.Optional(Type.Number({ minimum: 0, maximum: 3_600_000 })),
    /** Steps that are told while it lasts, at equal distances. */
    steps: Type.Optional(Type.Array(Type.String(), { maxItems: 20 })),
    /**
     * What becomes of it; `prepared` unless given. `reschedule` and `abort` fail, the latter for good; `hang` never ends on
     * its own; `crash` ends the agent's process in the middle; `lie` loses all connections in the middle and then calls a
     * guest failed that exists.
     */
    outcome: Type.Optional(Type.Enum(["prepared", "reschedule", "abort", "hang", "crash", "lie"])),
    /** What is said of a failure. */
    reason: Type.Optional(Type.String({ maxLength: 2_000 })),
    /** Share of the builds that `outcome` befalls, the others being prepared. Decided by the attempt and the seed. */
    probability: Type.Optional(Type.Number({ minimum: 0, maximum: 1 })),
    /**
     * Only so many first builds get `outcome`: of a host, those since the agent started; of a server, its first
     * selections.
     */
    first: Type.Optional(Type.Integer({ minimum: 0 })),
    /** Guests that ran do not outlive the agent's process: with it the host loses its power. */
    loses_power: Type.Optional(Type.Boolean()),
    /** How long it takes to start a guest for the first time, to change its power later, to remove it, and to hand it over. */
    start_ms: Type.Optional(Type.Number({ minimum: 0, maximum: 3_600_000 })),
    power_ms: Type.Optional(Type.Number({ minimum: 0, maximum: 3_600_000 })),
    destroy_ms: Type.Optional(Type.Number({ minimum: 0, maximum: 3_600_000 })),
    hand_off_ms: Type.Optional(Type.Number({ minimum: 0, maximum: 3_600_000 })),
    /** So many first orders of each guest fail: to hand over, to start what was prepared, to change its power. */
    hand_off_failures: Type.Optional(Type.Integer({ minimum: 0 })),
    start_failures: Type.Optional(Type.Integer({ minimum: 0 })),
    power_failures: Type.Optional(Type.Integer({ minimum: 0 })),
    /** How often removing the guest fails before it succeeds. */
    destroy_failures: Type.Optional(Type.Integer({ minimum: 0 })),
  },
  { additionalProperties: false },
);
export type FakeScript = Static<typeof FakeScript>;
export type FakeOutcome = NonNullable<FakeScript["outcome"]>;

/** Name of the metadata item with a server's own script. */
export const FAKE_METADATA_KEY = "berth:fake";

/** The script in a server's metadata; null: none. Throws an Error that says what is wrong with it. */
export function scriptOf(metadata: Readonly<Record<string, string>>): FakeScript | null {
  const text = metadata[FAKE_METADATA_KEY];
  if (text === undefined) return null;
  try {
    return parseScript(text);
  } catch (error) {
    throw new Error(`metadata ${FAKE_METADATA_KEY}: ${(error as Error).message}`);
  }
}

/** A script from its JSON. Throws an Error that says what is wrong with it. */
export function parseScript(text: string): FakeScript {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw new Error("no JSON");
  }
  const fault = firstFault(FakeScript, parsed);
  if (fault !== null) throw new Error(fault);
  return parsed as FakeScript;
}

/** A number in [0, 1) that follows from the seed and the attempt. */
export function chanceOf(seed: number, attemptId: string): number {
  return createHash("sha256").update(`${seed} ${attemptId}`).digest().readUInt32BE(0) / 2 ** 32;
}
