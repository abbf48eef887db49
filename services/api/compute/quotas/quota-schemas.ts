import { Type } from "typebox";
import { QUOTA_RESOURCES, type QuotaLimits, type QuotaResource } from "../../../../core/stores/api/quota-limits.ts";
import { badRequest } from "../../http/fault.ts";
import { Flag } from "../../http/schema.ts";

const INT_MAX = 2_147_483_647;

/** A limit: -1 for none, as a number or as its digits. */
const Limit = Type.Optional(
  Type.Unsafe<number | string>({
    type: ["integer", "string"],
    pattern: "^-?[0-9]{1,10}$",
    minimum: -1,
    maximum: INT_MAX,
  }),
);
const Limits = Object.fromEntries(QUOTA_RESOURCES.map((resource) => [resource, Limit]));

export const UpdateQuotaSetBody = Type.Object(
  { quota_set: Type.Object({ ...Limits, force: Type.Optional(Flag) }, { additionalProperties: false }) },
  { additionalProperties: false },
);
export const UpdateQuotaClassBody = Type.Object(
  { quota_class_set: Type.Object(Limits, { additionalProperties: false }) },
  { additionalProperties: false },
);

/** Reads the limits of a body. Refuses resources that the microversion does not have, and texts that are not limits. */
export function readLimits(
  asked: Readonly<Record<string, unknown>>,
  resources: readonly QuotaResource[],
): Partial<QuotaLimits> {
  const limits: [string, number][] = [];
  for (const [name, value] of Object.entries(asked)) {
    if (name === "force" || value === undefined) continue;
    if (!resources.some((resource) => resource === name))
      throw badRequest(`Additional properties are not allowed ('${name}' was unexpected)`);
    const limit = Number(value);
    if (limit < -1 || limit > INT_MAX)
      throw badRequest(
        `Invalid input for field/attribute ${name}. Value: ${String(value)}. It is not between -1 and ${INT_MAX}.`,
      );
    limits.push([name, limit]);
  }
  return Object.fromEntries(limits);
}

const LimitNumbers = Type.Record(Type.String(), Type.Integer());
export const QuotaSetAnswer = Type.Object({
  quota_set: Type.Unsafe<Record<string, number | string>>({
    type: "object",
    properties: { id: { type: "string" } },
    additionalProperties: { type: "integer" },
  }),
});
export const QuotaDetailAnswer = Type.Object({
  quota_set: Type.Unsafe<
    Record<string, string | { readonly limit: number; readonly in_use: number; readonly reserved: number }>
  >({
    type: "object",
    properties: { id: { type: "string" } },
    additionalProperties: {
      type: "object",
      properties: { limit: { type: "integer" }, in_use: { type: "integer" }, reserved: { type: "integer" } },
    },
  }),
});
export const QuotaClassAnswer = Type.Object({
  quota_class_set: Type.Unsafe<Record<string, number | string>>({
    type: "object",
    properties: { id: { type: "string" } },
    additionalProperties: { type: "integer" },
  }),
});
export const LimitsAnswer = Type.Object({
  limits: Type.Object({ rate: Type.Array(Type.Null()), absolute: LimitNumbers }),
});
