import { Type } from "typebox";
import { NullableString } from "../../http/schema.ts";

const Text = Type.String({ minLength: 1, maxLength: 255 });

export const ExplainBody = Type.Object(
  {
    /** Id of the flavor. */
    flavor: Text,
    image: Type.Optional(Text),
    /** The same format as `os:scheduler_hints`. */
    hints: Type.Optional(
      Type.Unsafe<Record<string, unknown>>({ type: "object", maxProperties: 64, additionalProperties: true }),
    ),
    zone: Type.Optional(Text),
    /** A host for which the explanation says why it was or was not chosen. */
    host: Type.Optional(Text),
    /** Maximum number of alternates of each server, 2 by default. Schedulers give a build one more than `--max-attempts`, and a move one fewer. */
    alternates: Type.Optional(Type.Integer({ minimum: 0, maximum: 19 })),
    count: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
    /** The project of the server; by default the caller's own project. */
    project_id: Type.Optional(Text),
    /** Hosts that are shown with their weights. */
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
  },
  { additionalProperties: false },
);
export type ExplainBody = Type.Static<typeof ExplainBody>;

const Step = Type.Object({
  step: Type.String(),
  left: Type.Integer(),
  removed: Type.Array(Type.Object({ why: Type.String(), hosts: Type.Integer() })),
});
const Lack = Type.Object({
  class: Type.String(),
  requested: Type.Number(),
  free: Type.Number(),
  provider: NullableString,
});
const Miss = Type.Object({ cell: Type.String(), host: Type.String(), why: Type.String(), lacks: Type.Array(Lack) });
const Weight = {
  host: Type.String(),
  weight: Type.Number(),
  /** For each weigher: raw, normalised, multiplier. */
  parts: Type.Unsafe<Record<string, readonly [number, number, number]>>({ type: "object", additionalProperties: true }),
};

export const ExplainAnswer = Type.Object({
  /** Why the request is refused before any host is considered, or null. */
  refusal: NullableString,
  hosts: Type.Integer(),
  steps: Type.Array(Step),
  cells: Type.Array(Type.Object({ cell: Type.String(), hosts: Type.Integer(), left: Type.Array(Type.Integer()) })),
  /** Best first. */
  ranked: Type.Array(Type.Object({ cell: Type.String(), ...Weight })),
  /** Where the servers would go; fewer than asked for when no more fit. */
  servers: Type.Array(Type.Object({ cell: Type.String(), host: Type.String(), alternates: Type.Array(Type.String()) })),
  nearest: Type.Array(Miss),
  /** The explanation for the host in the request. */
  host: Type.Union([
    Type.Object({
      cell: Type.String(),
      host: Type.String(),
      steps: Type.Array(Type.Object({ step: Type.String(), why: NullableString })),
      lacks: Type.Array(Lack),
    }),
    Type.Null(),
  ]),
  /** Cells whose hosts this process does not see. */
  cells_not_searched: Type.Array(Type.String()),
});
export type ExplainAnswer = Type.Static<typeof ExplainAnswer>;

/** A decision as it was kept, in the form of core/scheduling/explain/decision. */
export const DecisionSchema = Type.Unsafe<Record<string, unknown>>({ type: "object", additionalProperties: true });

export const DecisionsAnswer = Type.Object({
  decisions: Type.Array(
    Type.Object({
      server: Type.String(),
      request_id: Type.String(),
      scheduler: Type.String(),
      at: Type.String(),
      decision: DecisionSchema,
    }),
  ),
});
