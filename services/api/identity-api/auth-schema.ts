import { Type } from "typebox";

const Text = Type.String({ minLength: 1, maxLength: 255 });
const Domain = Type.Object({ id: Type.Optional(Text), name: Type.Optional(Text) });
const Project = Type.Object({ id: Type.Optional(Text), name: Type.Optional(Text), domain: Type.Optional(Domain) });

/**
 * `POST /v3/auth/tokens`.
 *
 * Source: https://docs.openstack.org/api-ref/identity/v3/#password-authentication-with-scoped-authorization
 */
export const AuthBody = Type.Object({
  auth: Type.Object({
    identity: Type.Object({
      methods: Type.Array(Text, { minItems: 1, maxItems: 8 }),
      password: Type.Optional(
        Type.Object({
          user: Type.Object({
            id: Type.Optional(Text),
            name: Type.Optional(Text),
            domain: Type.Optional(Domain),
            password: Type.String({ maxLength: 4096 }),
          }),
        }),
      ),
      token: Type.Optional(Type.Object({ id: Type.String({ minLength: 1, maxLength: 1024 }) })),
    }),
    scope: Type.Optional(
      Type.Union([
        Type.Literal("unscoped"),
        Type.Object({
          project: Type.Optional(Project),
          domain: Type.Optional(Domain),
          system: Type.Optional(Type.Object({ all: Type.Optional(Type.Boolean()) })),
        }),
      ]),
    ),
  }),
});
export type AuthBody = Type.Static<typeof AuthBody>;
export type AuthScope = NonNullable<AuthBody["auth"]["scope"]>;
