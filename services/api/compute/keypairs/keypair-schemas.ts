import { Type } from "typebox";
import { LinksSchema, NullableString } from "../../http/schema.ts";

/** All fields of any microversion. Which of them a call may give is checked by `readKeypair`. */
export const CreateKeypairBody = Type.Object(
  {
    keypair: Type.Object(
      {
        name: Type.String({ minLength: 1, maxLength: 255 }),
        type: Type.Optional(Type.String()),
        public_key: Type.Optional(Type.String({ maxLength: 65_535 })),
        user_id: Type.Optional(Type.String({ maxLength: 255 })),
      },
      { additionalProperties: false },
    ),
  },
  { additionalProperties: false },
);
export type CreateKeypairBody = Type.Static<typeof CreateKeypairBody>;

const Brief = {
  name: Type.String(),
  public_key: Type.String(),
  fingerprint: Type.String(),
  type: Type.Optional(Type.String()),
};

export const CreatedKeypairAnswer = Type.Object({
  keypair: Type.Object({ ...Brief, user_id: Type.String(), private_key: Type.Optional(Type.String()) }),
});
export const KeypairAnswer = Type.Object({
  keypair: Type.Object({
    ...Brief,
    user_id: Type.String(),
    id: Type.Integer(),
    created_at: Type.String(),
    updated_at: NullableString,
    deleted: Type.Boolean(),
    deleted_at: NullableString,
  }),
});
export const KeypairListAnswer = Type.Object({
  keypairs: Type.Array(Type.Object({ keypair: Type.Object(Brief) })),
  keypairs_links: Type.Optional(LinksSchema),
});
