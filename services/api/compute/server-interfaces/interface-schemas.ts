import { Type } from "typebox";
import { Uuid } from "../../http/schema.ts";

const FixedIps = Type.Array(
  Type.Object({ ip_address: Type.String({ maxLength: 64 }) }, { additionalProperties: false }),
  { minItems: 1, maxItems: 1 },
);

/** `POST /servers/{id}/os-interface`. Source: nova's schemas/attach_interfaces.py. */
export const AttachBody = Type.Object(
  {
    interfaceAttachment: Type.Optional(
      Type.Object(
        {
          net_id: Type.Optional(Uuid),
          port_id: Type.Optional(Type.Union([Uuid, Type.Null()])),
          fixed_ips: Type.Optional(FixedIps),
          tag: Type.Optional(Type.String({ minLength: 1, maxLength: 60, pattern: "^[^,/]*$" })),
        },
        { additionalProperties: false },
      ),
    ),
  },
  { additionalProperties: false },
);
export type AttachBody = Type.Static<typeof AttachBody>;

const Interface = Type.Object({
  fixed_ips: Type.Array(Type.Unknown()),
  mac_addr: Type.String(),
  net_id: Type.String(),
  port_id: Type.String(),
  port_state: Type.String(),
  tag: Type.Optional(Type.Union([Type.String(), Type.Null()])),
});
export const InterfaceAnswer = Type.Object({ interfaceAttachment: Interface });
export const InterfaceListAnswer = Type.Object({ interfaceAttachments: Type.Array(Interface) });
