import { Type } from "typebox";
import { LinksSchema, NullableString } from "../../http/schema.ts";

const Strings = Type.Record(Type.String(), Type.String());
const NamedGroups = Type.Array(Type.Object({ name: Type.String() }));

export const ServerBrief = Type.Object({
  id: Type.String(),
  /** Left out from 2.69 on while the server's cell does not answer. */
  name: Type.Optional(Type.String()),
  links: LinksSchema,
  status: Type.Optional(Type.String()),
});

export const ServerFault = Type.Object({
  code: Type.Integer(),
  created: Type.String(),
  message: Type.String(),
  details: Type.Optional(Type.String()),
});

/** The flavor as it was when the server was created. Before microversion 2.47 it has `id` and `links`, from then on the other fields. */
const ServerFlavor = Type.Object({
  id: Type.Optional(Type.String()),
  links: Type.Optional(LinksSchema),
  original_name: Type.Optional(Type.String()),
  vcpus: Type.Optional(Type.Integer()),
  ram: Type.Optional(Type.Integer()),
  disk: Type.Optional(Type.Integer()),
  ephemeral: Type.Optional(Type.Integer()),
  swap: Type.Optional(Type.Integer()),
  extra_specs: Type.Optional(Strings),
});

export const ServerDetail = Type.Object({
  id: Type.String(),
  name: Type.String(),
  status: Type.String(),
  tenant_id: Type.String(),
  user_id: Type.String(),
  created: Type.String(),
  updated: Type.String(),
  hostId: Type.String(),
  /** The empty string when the server has no image. */
  image: Type.Unsafe<
    "" | { id: string; links: { rel: string; href: string }[]; properties?: Readonly<Record<string, string>> }
  >({}),
  flavor: ServerFlavor,
  addresses: Type.Record(Type.String(), Type.Array(Type.Record(Type.String(), Type.Unknown()))),
  accessIPv4: Type.String(),
  accessIPv6: Type.String(),
  metadata: Strings,
  links: LinksSchema,
  key_name: NullableString,
  config_drive: Type.String(),
  progress: Type.Optional(Type.Integer()),
  fault: Type.Optional(ServerFault),
  /** Left out where it is empty, as in Nova. */
  security_groups: Type.Optional(NamedGroups),
  "OS-DCF:diskConfig": Type.String(),
  "OS-EXT-AZ:availability_zone": Type.String(),
  "OS-EXT-STS:vm_state": NullableString,
  "OS-EXT-STS:task_state": NullableString,
  "OS-EXT-STS:power_state": Type.Integer(),
  "OS-SRV-USG:launched_at": NullableString,
  "OS-SRV-USG:terminated_at": NullableString,
  "os-extended-volumes:volumes_attached": Type.Array(
    Type.Object({ id: Type.String(), delete_on_termination: Type.Optional(Type.Boolean()) }),
  ),
  "OS-EXT-SRV-ATTR:host": Type.Optional(NullableString),
  "OS-EXT-SRV-ATTR:hypervisor_hostname": Type.Optional(NullableString),
  "OS-EXT-SRV-ATTR:instance_name": Type.Optional(Type.String()),
  "OS-EXT-SRV-ATTR:reservation_id": Type.Optional(Type.String()),
  "OS-EXT-SRV-ATTR:hostname": Type.Optional(Type.String()),
  "OS-EXT-SRV-ATTR:kernel_id": Type.Optional(Type.String()),
  "OS-EXT-SRV-ATTR:ramdisk_id": Type.Optional(Type.String()),
  "OS-EXT-SRV-ATTR:root_device_name": Type.Optional(NullableString),
  "OS-EXT-SRV-ATTR:user_data": Type.Optional(NullableString),
  "OS-EXT-SRV-ATTR:launch_index": Type.Optional(Type.Integer()),
  host_status: Type.Optional(Type.String()),
  locked: Type.Optional(Type.Boolean()),
  locked_reason: Type.Optional(NullableString),
  description: Type.Optional(NullableString),
  tags: Type.Optional(Type.Array(Type.String())),
  trusted_image_certificates: Type.Optional(Type.Union([Type.Array(Type.String()), Type.Null()])),
  server_groups: Type.Optional(Type.Array(Type.String())),
  pinned_availability_zone: Type.Optional(NullableString),
  scheduler_hints: Type.Optional(Type.Record(Type.String(), Type.Array(Type.String()))),
});
export type ServerDetail = Type.Static<typeof ServerDetail>;

/** A shown server. While its cell does not answer, it has only the fields that the API tier knows. */
const ShownServer = Type.Partial(ServerDetail);

export const ServerListAnswer = Type.Object({
  servers: Type.Array(ServerBrief),
  servers_links: Type.Optional(LinksSchema),
});
export const ServerDetailListAnswer = Type.Object({
  servers: Type.Array(ShownServer),
  servers_links: Type.Optional(LinksSchema),
});
export const ServerAnswer = Type.Object({ server: ShownServer });

/** The first of the accepted servers or, if the call asked for it, the reservation id of all of them. */
export const CreateAnswer = Type.Object({
  server: Type.Optional(
    Type.Object({
      id: Type.String(),
      links: LinksSchema,
      "OS-DCF:diskConfig": Type.String(),
      security_groups: NamedGroups,
      adminPass: Type.Optional(Type.String()),
    }),
  ),
  reservation_id: Type.Optional(Type.String()),
});

const ActionEvent = Type.Object({
  event: Type.String(),
  start_time: Type.String(),
  finish_time: NullableString,
  result: NullableString,
  traceback: Type.Optional(NullableString),
  host: Type.Optional(NullableString),
  hostId: Type.Optional(Type.String()),
  details: Type.Optional(NullableString),
});

const Action = {
  action: Type.String(),
  instance_uuid: Type.String(),
  request_id: Type.String(),
  user_id: NullableString,
  project_id: NullableString,
  start_time: Type.String(),
  message: NullableString,
  updated_at: Type.Optional(NullableString),
};

export const ActionListAnswer = Type.Object({
  instanceActions: Type.Array(Type.Object(Action)),
  links: Type.Optional(LinksSchema),
});
export const ActionAnswer = Type.Object({
  instanceAction: Type.Object({ ...Action, events: Type.Optional(Type.Array(ActionEvent)) }),
});
