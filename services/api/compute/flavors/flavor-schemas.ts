import { Type } from "typebox";
import { Flag, LinksSchema, Name, NullableString, WholeNumber } from "../../http/schema.ts";

const INT_MAX = 2_147_483_647;
const Positive = WholeNumber({ minimum: 1, maximum: INT_MAX });
const NotNegative = Type.Optional(WholeNumber({ minimum: 0, maximum: INT_MAX }));

/** The form of a flavor's id, which has no space at either end. */
export const FLAVOR_ID = /^(?! )[a-zA-Z0-9. _-]{1,255}(?<! )$/;

const Description = Type.Unsafe<string | null>({
  type: ["string", "null"],
  maxLength: 65_535,
  pattern: "^[^\\p{Cc}\\p{Cs}]*$",
});

export const CreateFlavorBody = Type.Object(
  {
    flavor: Type.Object(
      {
        name: Name,
        id: Type.Optional(
          Type.Unsafe<string | number | null>({
            type: ["string", "number", "null"],
            minLength: 1,
            maxLength: 255,
            pattern: FLAVOR_ID.source,
          }),
        ),
        ram: Positive,
        vcpus: Positive,
        disk: WholeNumber({ minimum: 0, maximum: INT_MAX }),
        "OS-FLV-EXT-DATA:ephemeral": NotNegative,
        swap: NotNegative,
        rxtx_factor: Type.Optional(
          Type.Unsafe<number | string>({
            type: ["number", "string"],
            pattern: "^[0-9]{1,30}(\\.[0-9]{1,30})?$",
            exclusiveMinimum: 0,
            maximum: 3.40282e38,
          }),
        ),
        "os-flavor-access:is_public": Type.Optional(Flag),
        description: Type.Optional(Description),
      },
      { additionalProperties: false },
    ),
  },
  { additionalProperties: false },
);
export type CreateFlavorBody = Type.Static<typeof CreateFlavorBody>;

export const UpdateFlavorBody = Type.Object(
  { flavor: Type.Object({ description: Description }, { additionalProperties: false }) },
  { additionalProperties: false },
);

const Tenant = Type.Object({ tenant: Type.String({ minLength: 1, maxLength: 255 }) }, { additionalProperties: false });
export const FlavorActionBody = Type.Object(
  { addTenantAccess: Type.Optional(Tenant), removeTenantAccess: Type.Optional(Tenant) },
  { additionalProperties: false, minProperties: 1, maxProperties: 1 },
);
export const FlavorAccessAnswer = Type.Object({
  flavor_access: Type.Array(Type.Object({ flavor_id: Type.String(), tenant_id: Type.String() })),
});

/**
 * Keys and values of extra specs. A number is taken as its digits. Unprintable characters are refused, since specs are stored as
 * JSON in a database.
 */
const ExtraSpecs = {
  type: "object",
  maxProperties: 256,
  patternProperties: {
    "^[a-zA-Z0-9\\-_:. ]{1,255}$": { type: ["string", "number"], maxLength: 255, pattern: "^[^\\p{Cc}\\p{Cs}]*$" },
  },
  additionalProperties: false,
} as const;
export type ExtraSpecValues = Readonly<Record<string, string | number>>;

export const CreateExtraSpecsBody = Type.Object(
  { extra_specs: Type.Unsafe<ExtraSpecValues>(ExtraSpecs) },
  { additionalProperties: false },
);
export const UpdateExtraSpecBody = Type.Unsafe<ExtraSpecValues>({ ...ExtraSpecs, minProperties: 1, maxProperties: 1 });

const Strings = Type.Record(Type.String(), Type.String());

export const FlavorBrief = Type.Object({
  id: Type.String(),
  name: Type.String(),
  links: LinksSchema,
  description: Type.Optional(NullableString),
});
export const FlavorDetail = Type.Object({
  ...FlavorBrief.properties,
  ram: Type.Integer(),
  vcpus: Type.Integer(),
  disk: Type.Integer(),
  /** Before microversion 2.75 the empty string stands for none. */
  swap: Type.Unsafe<number | "">({}),
  "OS-FLV-EXT-DATA:ephemeral": Type.Integer(),
  "OS-FLV-DISABLED:disabled": Type.Optional(Type.Boolean()),
  "os-flavor-access:is_public": Type.Boolean(),
  rxtx_factor: Type.Optional(Type.Number()),
  extra_specs: Type.Optional(Strings),
});
export type FlavorDetail = Type.Static<typeof FlavorDetail>;

export const FlavorAnswer = Type.Object({ flavor: FlavorDetail });
export const FlavorListAnswer = Type.Object({
  flavors: Type.Array(FlavorBrief),
  flavors_links: Type.Optional(LinksSchema),
});
export const FlavorDetailListAnswer = Type.Object({
  flavors: Type.Array(FlavorDetail),
  flavors_links: Type.Optional(LinksSchema),
});
export const ExtraSpecsAnswer = Type.Object({ extra_specs: Strings });
export const ExtraSpecAnswer = Strings;
