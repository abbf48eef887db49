import { Type } from "typebox";
import type { SchedulerHint } from "../../../../proto/gen/berth/shared.ts";
import { storedSpelling } from "../../http/canonical-uuid.ts";
import { Uuid } from "../../http/schema.ts";

const HINTS_MAX = 64;
/** Hints whose values are uuids of servers. */
export const SERVER_HINTS: ReadonlySet<string> = new Set(["same_host", "different_host"]);

const OneOrSeveral = Type.Optional(Type.Union([Uuid, Type.Array(Uuid, { maxItems: 1_000 })]));

/** `os:scheduler_hints`. Hints of other names are kept for filters that know them, as Nova does. */
export const SchedulerHints = Type.Object(
  {
    group: Type.Optional(Type.Union([Uuid, Type.Array(Uuid, { minItems: 1, maxItems: 1 })])),
    // Nova checks the form of ids in a list only. No server has an id of another form, so no host passes.
    same_host: Type.Optional(Type.Union([Type.String({ maxLength: 255 }), Type.Array(Uuid, { maxItems: 1_000 })])),
    different_host: OneOrSeveral,
    query: Type.Optional(Type.Unsafe<string | object>({ type: ["string", "object"] })),
    target_cell: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
    different_cell: Type.Optional(Type.Union([Type.String(), Type.Array(Type.String(), { maxItems: 100 })])),
    build_near_host_ip: Type.Optional(Type.String({ minLength: 1, maxLength: 64, pattern: "^[0-9a-fA-F:.]+$" })),
    cidr: Type.Optional(Type.String({ maxLength: 64, pattern: "^/[0-9a-f.:]+$" })),
  },
  { additionalProperties: true, maxProperties: HINTS_MAX },
);

/**
 * Returns the hints of a body under either of their names; the newer name wins if both are given. A value that is not text becomes JSON.
 */
export function readHints(body: {
  readonly "os:scheduler_hints"?: Readonly<Record<string, unknown>>;
  readonly "OS-SCH-HNT:scheduler_hints"?: Readonly<Record<string, unknown>>;
}): SchedulerHint[] {
  return hintsOf(body["os:scheduler_hints"] ?? body["OS-SCH-HNT:scheduler_hints"] ?? {});
}

/** Returns hints as a list of names and values. */
export function hintsOf(hints: Readonly<Record<string, unknown>>): SchedulerHint[] {
  return Object.entries(hints).map(([name, value]) => ({
    name,
    values: (Array.isArray(value) && name !== "query" ? value : [value]).map((item) =>
      SERVER_HINTS.has(name) ? storedSpelling(textOf(item)) : textOf(item),
    ),
  }));
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
