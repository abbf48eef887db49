import { Type } from "typebox";
import { NullableString } from "../http/schema.ts";
import { DecisionSchema } from "./explain-schemas.ts";

const nullable = <Schema extends Parameters<typeof Type.Union>[0][number]>(schema: Schema) =>
  Type.Union([schema, Type.Null()]);

const Claim = Type.Array(Type.Object({ provider: Type.String(), class: Type.String(), amount: Type.Integer() }));
/** Who made a call of the Compute API. */
const AskedBy = Type.Object({ request_id: Type.String(), user_id: Type.String(), project_id: Type.String() });

const Attempt = Type.Object({
  host: Type.String(),
  at: Type.String(),
  ended_at: NullableString,
  /** `success`, `failed`, `skipped` or `cancelled`; null while it runs. */
  result: NullableString,
  reason: NullableString,
  /** Names of the conductors that carried the task meanwhile. */
  conductors: Type.Array(Type.String()),
  claim: Claim,
});

const Hop = Type.Object({
  at: Type.String(),
  from: Type.String(),
  to: Type.String(),
  reason: NullableString,
  gave_back: Claim,
  claimed: Claim,
});

const LifeTask = Type.Object({
  id: Type.String(),
  /** `build`, `delete`, or the kind of the operation. */
  kind: Type.String(),
  asked_by: nullable(AskedBy),
  at: Type.String(),
  ended_at: NullableString,
  /** `success`, `error`, `deleted` or `cancelled`; null: it has not ended. */
  outcome: NullableString,
  stage: NullableString,
  /** Why an operation goes, or went, back; "" if it did not. */
  reason: Type.String(),
  conductors: Type.Array(Type.Object({ at: Type.String(), id: Type.String(), name: Type.String() })),
  stages: Type.Array(Type.Object({ at: Type.String(), stage: Type.String(), host: NullableString })),
  attempts: Type.Array(Attempt),
  hops: Type.Array(Hop),
  move: nullable(
    Type.Object({ from: NullableString, to: NullableString, status: NullableString, note: Type.String() }),
  ),
});

/** A move that was asked for and that the cell has no task of: it waits for a host, was refused, or its task is not known. */
const RequestedMove = Type.Object({
  id: Type.String(),
  kind: Type.String(),
  /** `accepted`, `begun` or `refused`. */
  state: Type.String(),
  fault: NullableString,
  asked_by: AskedBy,
  at: Type.String(),
  updated_at: Type.String(),
});

export const LifeAnswer = Type.Object({
  server: Type.String(),
  name: NullableString,
  cell: NullableString,
  /** The server as its cell has it; null: not known, or in no cell. */
  state: nullable(
    Type.Object({
      status: Type.String(),
      task_state: NullableString,
      host: NullableString,
      fault: nullable(Type.Object({ message: Type.String(), at: Type.String() })),
      launched_at: NullableString,
      deleted_at: NullableString,
    }),
  ),
  /** The accepted request; null: it was archived. */
  request: nullable(
    Type.Object({
      /** `accepted`, `dispatched`, `failed`, `cancelled` or `deleted`. */
      state: Type.String(),
      asked_by: AskedBy,
      at: Type.String(),
      updated_at: Type.String(),
      fault: NullableString,
    }),
  ),
  /** The first call that asked to delete it; who made it stands with the task of kind `delete`, where there is one. */
  deletion: nullable(Type.Object({ request_id: Type.String(), at: Type.String() })),
  /** Newest first. */
  decisions: Type.Array(
    Type.Object({
      server: Type.String(),
      request_id: Type.String(),
      scheduler: Type.String(),
      at: Type.String(),
      decision: DecisionSchema,
    }),
  ),
  /** Oldest first. */
  tasks: Type.Array(LifeTask),
  requested_moves: Type.Array(RequestedMove),
  /** Hosts that something under way needs, and the server's own. */
  hosts: Type.Array(
    Type.Object({
      name: Type.String(),
      up: Type.Boolean(),
      forced_down: Type.Boolean(),
      /** When a conductor last heard of it. */
      seen_at: NullableString,
    }),
  ),
  /** What is awaited now, in words. */
  waits: Type.Array(Type.String()),
  /** What this answer lacks and why, in words; empty: nothing that is known to be missing. */
  missing: Type.Array(Type.String()),
});
export type LifeAnswer = Type.Static<typeof LifeAnswer>;
