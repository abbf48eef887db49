import { Type } from "typebox";
import { Name, WholeNumber } from "../../http/schema.ts";

const INT_MAX = 2_147_483_647;

/** All fields of any microversion. `readGroup` checks which of them the call's microversion allows. */
export const CreateGroupBody = Type.Object(
  {
    server_group: Type.Object(
      {
        name: Name,
        policies: Type.Optional(Type.Array(Type.String({ maxLength: 255 }), { minItems: 1, maxItems: 1 })),
        policy: Type.Optional(Type.String({ maxLength: 255 })),
        rules: Type.Optional(
          Type.Object(
            { max_server_per_host: Type.Optional(WholeNumber({ minimum: 1, maximum: INT_MAX })) },
            { additionalProperties: false },
          ),
        ),
      },
      { additionalProperties: false },
    ),
  },
  { additionalProperties: false },
);
export type CreateGroupBody = Type.Static<typeof CreateGroupBody>;

export const GroupView = Type.Object({
  id: Type.String(),
  name: Type.String(),
  policies: Type.Optional(Type.Array(Type.String())),
  metadata: Type.Optional(Type.Object({})),
  policy: Type.Optional(Type.String()),
  rules: Type.Optional(Type.Object({ max_server_per_host: Type.Optional(Type.Integer()) })),
  members: Type.Array(Type.String()),
  project_id: Type.Optional(Type.String()),
  user_id: Type.Optional(Type.String()),
});
export type GroupView = Type.Static<typeof GroupView>;

export const GroupAnswer = Type.Object({ server_group: GroupView });
export const GroupListAnswer = Type.Object({ server_groups: Type.Array(GroupView) });
