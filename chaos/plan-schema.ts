import { type Static, Type } from "typebox";
import { CHAOS_FAULTS } from "./history-line.ts";

const closed = { additionalProperties: false } as const;
const Count = (maximum: number) => Type.Optional(Type.Integer({ minimum: 1, maximum }));
const Duration = Type.String({ pattern: "^\\d+(\\.\\d+)?(ms|s|m)$" });
const Moment = Type.String({ pattern: "^(\\d+(\\.\\d+)?(ms|s|m)|\\d{1,2}%|100%)$" });
const Share = Type.Number({ minimum: 0, maximum: 1 });

const FaultText = Type.Object(
  {
    fault: Type.Enum([...CHAOS_FAULTS]),
    target: Type.Optional(Type.String({ pattern: "^[a-z0-9-]+(@[a-z0-9-]+)?( -> [a-z0-9-]+(@[a-z0-9-]+)?)?$" })),
    pick: Type.Optional(Type.Union([Type.Literal("one"), Type.Literal("all"), Type.Integer({ minimum: 1 })])),
    at: Moment,
    for: Type.Optional(Moment),
    every: Type.Optional(Duration),
    until: Type.Optional(Moment),
    way: Type.Optional(Type.Enum(["both", "there", "back"])),
    delay: Type.Optional(Duration),
    share: Type.Optional(Share),
  },
  closed,
);
export type FaultText = Static<typeof FaultText>;

/** The schema of a plan's file. */
export const PlanText = Type.Object(
  {
    name: Type.String({ pattern: "^[a-z0-9-]{1,60}$" }),
    about: Type.String({ minLength: 1 }),
    duration: Duration,
    settle: Type.Optional(Duration),
    cloud: Type.Optional(
      Type.Object(
        {
          cells: Count(10),
          apis: Count(10),
          schedulers: Count(10),
          conductors: Count(10),
          agents: Count(20),
          hosts: Count(1_000),
          standbys: Type.Optional(Type.Boolean()),
        },
        closed,
      ),
    ),
    load: Type.Object(
      {
        clients: Type.Integer({ minimum: 1, maximum: 1_000 }),
        rate: Type.Optional(Type.Number({ exclusiveMinimum: 0, maximum: 10_000 })),
        next: Type.Optional(Type.Enum(["ended", "accepted"])),
        creates: Count(1_000_000),
        retry: Type.Optional(Type.Boolean()),
        deletes: Type.Optional(Share),
        operations: Type.Optional(Share),
        build: Type.Optional(Duration),
        timeout: Type.Optional(Duration),
      },
      closed,
    ),
    nemesis: Type.Optional(Type.Array(FaultText)),
    rounds: Type.Optional(
      Type.Array(Type.Object({ name: Type.String({ minLength: 1 }), nemesis: Type.Array(FaultText) }, closed), {
        minItems: 1,
      }),
    ),
    expect: Type.Optional(
      Type.Object(
        {
          errors: Type.Optional(Type.Integer({ minimum: 0 })),
          active: Type.Optional(Share),
          unknown: Type.Optional(Type.Integer({ minimum: 0 })),
          slowest: Type.Optional(Duration),
          alone: Type.Optional(Duration),
        },
        closed,
      ),
    ),
  },
  closed,
);
export type PlanText = Static<typeof PlanText>;
