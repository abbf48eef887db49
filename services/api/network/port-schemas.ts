import { Type } from "typebox";
import { Uuid } from "../http/schema.ts";

/** A port of Neutron has two: bandwidth and packet rate. Each more makes it harder to find a host for a server with the port. */
const GROUPS_MAX = 4;
const NAME = "^[A-Z0-9_]{1,255}$";

const Resources = Type.Unsafe<Record<string, number>>({
  type: "object",
  minProperties: 1,
  maxProperties: 32,
  patternProperties: { [NAME]: { type: "integer", minimum: 1, maximum: 2_147_483_647 } },
  additionalProperties: false,
});
const Group = {
  resources: Resources,
  required: Type.Optional(Type.Array(Type.String({ pattern: NAME }), { maxItems: 64 })),
};

const ResourceRequest = Type.Union([
  Type.Object(
    {
      request_groups: Type.Array(Type.Object({ id: Type.Optional(Uuid), ...Group }, { additionalProperties: false }), {
        maxItems: GROUPS_MAX,
      }),
      same_subtree: Type.Optional(Type.Array(Uuid, { maxItems: GROUPS_MAX })),
    },
    { additionalProperties: false },
  ),
  Type.Object(Group, { additionalProperties: false }),
]);
export type ResourceRequest = Type.Static<typeof ResourceRequest>;

/** `POST /v2.0/ports`. */
export const CreatePortBody = Type.Object(
  {
    port: Type.Object(
      {
        network_id: Uuid,
        name: Type.Optional(Type.String({ maxLength: 255 })),
        project_id: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
        tenant_id: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
        admin_state_up: Type.Optional(Type.Literal(true)),
        fixed_ips: Type.Optional(
          Type.Array(
            Type.Object(
              { ip_address: Type.Optional(Type.String({ maxLength: 64 })), subnet_id: Type.Optional(Uuid) },
              { additionalProperties: false },
            ),
            { maxItems: 1 },
          ),
        ),
        description: Type.Optional(Type.Literal("")),
        "binding:vnic_type": Type.Optional(Type.Literal("normal")),
        resource_request: Type.Optional(Type.Union([ResourceRequest, Type.Null()])),
      },
      { additionalProperties: false },
    ),
  },
  { additionalProperties: false },
);
export type CreatePortBody = Type.Static<typeof CreatePortBody>;

/** `PUT /v2.0/ports/{id}`: only the name of a port changes. */
export const UpdatePortBody = Type.Object(
  { port: Type.Object({ name: Type.Optional(Type.String({ maxLength: 255 })) }, { additionalProperties: false }) },
  { additionalProperties: false },
);
