import { Type } from "typebox";
import { Flag, Metadata, Name, Uuid, WholeNumber } from "../../http/schema.ts";
import { SERVER_PORTS_MAX } from "../server-interfaces/refuse-many-ports.ts";
import { Personality } from "./personality.ts";
import { SchedulerHints } from "./scheduler-hints.ts";
import { Address, Description, DiskConfig, Tags, TrustedCertificates, UserData } from "./server-fields.ts";

const COUNT_MAX = 2_147_483_647;

/** Maximum number of block devices that a call gives each server, and that an image does. */
export const DISKS_MAX = 256;
/** A network to connect to. Only ports are supported. */
const Network = Type.Object(
  {
    port: Type.Optional(Type.Union([Uuid, Type.Null()])),
    uuid: Type.Optional(Type.String({ maxLength: 255 })),
    fixed_ip: Type.Optional(Type.String({ maxLength: 64 })),
    tag: Type.Optional(Type.String({ minLength: 1, maxLength: 60 })),
  },
  { additionalProperties: false },
);

/**
 * The body of `POST /servers`. Nothing in it is ignored: values that Berth does not support are refused by name.
 */
export const CreateServerBody = Type.Object(
  {
    server: Type.Object(
      {
        name: Name,
        flavorRef: Type.Unsafe<string | number>({ type: ["string", "integer"], minLength: 1, maxLength: 1024 }),
        imageRef: Type.Optional(Type.Union([Uuid, Type.Literal("")])),
        adminPass: Type.Optional(Type.String()),
        metadata: Type.Optional(Metadata),
        availability_zone: Type.Optional(Name),
        networks: Type.Optional(
          Type.Union([Type.Literal("none"), Type.Literal("auto"), Type.Array(Network, { maxItems: SERVER_PORTS_MAX })]),
        ),
        host: Type.Optional(Name),
        hostname: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
        hypervisor_hostname: Type.Optional(Name),
        min_count: Type.Optional(WholeNumber({ minimum: 1, maximum: COUNT_MAX })),
        max_count: Type.Optional(WholeNumber({ minimum: 1, maximum: COUNT_MAX })),
        return_reservation_id: Type.Optional(Flag),
        security_groups: Type.Optional(
          Type.Array(
            Type.Object(
              { name: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })) },
              { additionalProperties: false },
            ),
            {
              maxItems: 16,
            },
          ),
        ),
        "OS-DCF:diskConfig": Type.Optional(DiskConfig),
        config_drive: Type.Optional(Type.Union([Flag, Type.Null()])),
        description: Type.Optional(Description),
        key_name: Type.Optional(Type.Union([Name, Type.Null()])),
        user_data: Type.Optional(UserData),
        accessIPv4: Type.Optional(Address),
        accessIPv6: Type.Optional(Address),
        trusted_image_certificates: Type.Optional(TrustedCertificates),
        tags: Type.Optional(Tags),
        personality: Type.Optional(Personality),
        /** `readBlockDevices` reads both. */
        block_device_mapping: Type.Optional(Type.Array(Type.Unknown(), { maxItems: DISKS_MAX })),
        block_device_mapping_v2: Type.Optional(Type.Array(Type.Unknown(), { maxItems: DISKS_MAX })),
      },
      { additionalProperties: false },
    ),
    "os:scheduler_hints": Type.Optional(SchedulerHints),
    "OS-SCH-HNT:scheduler_hints": Type.Optional(SchedulerHints),
  },
  { additionalProperties: false },
);
/** The fields that not every microversion has. Source: Nova's schemas of `servers.create`. */
export const CREATE_FIELDS_KNOWN = {
  description: [19],
  tags: [52],
  personality: [1, 56],
  trusted_image_certificates: [63],
} as const;
export type CreateServerBody = Type.Static<typeof CreateServerBody>;
