import { Type } from "typebox";
import { NullableString } from "../../http/schema.ts";
import { DecisionSchema } from "./explain-schemas.ts";

const nullable = <Schema extends Parameters<typeof Type.Union>[0][number]>(schema: Schema) =>
  Type.Union([schema, Type.Null()]);

const Claim = Type.Array(Type.Object({ provider: Type.String(), class: Type.String(), amount: Type.Integer() }));
/** The caller of the Compute API. */
const AskedBy = Type.Object({ request_id: Type.String(), user_id: Type.String(), project_id: Type.String() });

const Attempt = Type.Object({
  host: Type.String(),
  at: Type.String(),
  ended_at: NullableString,
  /** `success`, `failed`, `skipped` or `cancelled`; null while it runs. */
  result: NullableString,
  reason: NullableString,
  /** Names of the conductors that worked on the task during the attempt. */
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
  /** `success`, `error`, `deleted` or `cancelled`; null while the task is open. */
  outcome: NullableString,
  stage: NullableString,
  /** Why an operation is being or was rolled back; "" if it was not. */
  reason: Type.String(),
  conductors: Type.Array(Type.Object({ at: Type.String(), id: Type.String(), name: Type.String() })),
  stages: Type.Array(Type.Object({ at: Type.String(), stage: Type.String(), host: NullableString })),
  attempts: Type.Array(Attempt),
  hops: Type.Array(Hop),
  move: nullable(
    Type.Object({ from: NullableString, to: NullableString, status: NullableString, note: Type.String() }),
  ),
});

/** A requested move for which the cell has no task: it waits for a host, was refused, or its task is not known. */
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
  /** The server's state in its cell, or null when it is unknown or the server is in no cell. */
  state: nullable(
    Type.Object({
      status: Type.String(),
      task_state: NullableString,
      host: NullableString,
      fault: nullable(Type.Object({ message: Type.String(), at: Type.String(), next_step: NullableString })),
      launched_at: NullableString,
      deleted_at: NullableString,
    }),
  ),
  /** The accepted request, or null when it was archived. */
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
  /** The first call that asked to delete the server. Its caller is shown with the task of kind `delete`, where there is one. */
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
  /** The server's own host, and the hosts on which its unfinished tasks depend. */
  hosts: Type.Array(
    Type.Object({
      name: Type.String(),
      up: Type.Boolean(),
      forced_down: Type.Boolean(),
      /** When a conductor last heard of it. */
      seen_at: NullableString,
    }),
  ),
  /** Sentences that say what the server currently waits for. */
  waits: Type.Array(Type.String()),
  /** Sentences that say what is missing from this answer, and why. Empty when nothing is known to be missing. */
  missing: Type.Array(Type.String()),
  /** Where this api's dashboard shows the same, below the api's address. Null when this api serves no dashboard. */
  dashboard: NullableString,
});
export type LifeAnswer = Type.Static<typeof LifeAnswer>;
