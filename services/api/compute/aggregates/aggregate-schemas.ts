import { Type } from "typebox";
import { NullableString } from "../../http/schema.ts";

/** As Nova's `az_name`: printable, without a colon. */
const ZONE_PATTERN = "^(?=\\S)[^\\p{C}\\p{Zl}\\p{Zp}:]*(?<=\\S)$";
const Zone = Type.Unsafe<string | null>({
  anyOf: [{ type: "string", minLength: 1, maxLength: 255, pattern: ZONE_PATTERN }, { type: "null" }],
});
/** A name, whose leading and trailing spaces are removed. */
const LooseName = Type.String({ minLength: 1, maxLength: 255, pattern: "^(?=.*\\S)[^\\p{C}\\p{Zl}\\p{Zp}]*$" });

export const CreateAggregateBody = Type.Object(
  {
    aggregate: Type.Object(
      { name: LooseName, availability_zone: Type.Optional(Zone) },
      { additionalProperties: false },
    ),
  },
  { additionalProperties: false },
);

export const UpdateAggregateBody = Type.Object(
  {
    aggregate: Type.Object(
      { name: Type.Optional(LooseName), availability_zone: Type.Optional(Zone) },
      { additionalProperties: false, minProperties: 1 },
    ),
  },
  { additionalProperties: false },
);

const Host = Type.Object(
  { host: Type.String({ minLength: 1, maxLength: 255, pattern: "^[a-zA-Z0-9\\-._]*$" }) },
  { additionalProperties: false },
);

/** Keys and values; null removes a key. */
const MetadataChange = Type.Unsafe<Record<string, string | null>>({
  type: "object",
  maxProperties: 128,
  patternProperties: {
    "^[a-zA-Z0-9\\-_:. ]{1,255}$": { type: ["string", "null"], maxLength: 255, pattern: "^[^\\p{Cc}\\p{Cs}]*$" },
  },
  additionalProperties: false,
});

export const AggregateActionBody = Type.Object(
  {
    add_host: Type.Optional(Host),
    remove_host: Type.Optional(Host),
    set_metadata: Type.Optional(Type.Object({ metadata: MetadataChange }, { additionalProperties: false })),
  },
  { additionalProperties: false, minProperties: 1, maxProperties: 1 },
);

const Strings = Type.Record(Type.String(), Type.String());
const NewAggregateView = {
  id: Type.Integer(),
  uuid: Type.Optional(Type.String()),
  name: Type.String(),
  availability_zone: NullableString,
  created_at: Type.String(),
  updated_at: NullableString,
  deleted: Type.Boolean(),
  deleted_at: NullableString,
};
const AggregateView = Type.Object({ ...NewAggregateView, hosts: Type.Array(Type.String()), metadata: Strings });

export const NewAggregateAnswer = Type.Object({ aggregate: Type.Object(NewAggregateView) });
export const AggregateAnswer = Type.Object({ aggregate: AggregateView });
export const AggregateListAnswer = Type.Object({ aggregates: Type.Array(AggregateView) });
