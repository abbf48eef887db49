import { LIMIT_PATTERN, NAME_SUFFIX_PATTERN, NUMBER_SUFFIX_PATTERN } from "./patterns.ts";

const text = { type: "string" };
const limit = { type: "string", pattern: LIMIT_PATTERN };
const group_policy = { type: "string", enum: ["none", "isolate"] };

const plain = (properties: Readonly<Record<string, unknown>>) => ({
  type: "object",
  properties: { resources: text, ...properties },
  required: ["resources"],
  additionalProperties: false,
});

const grouped = (keys: readonly string[], suffix: string, properties: Readonly<Record<string, unknown>> = {}) => ({
  type: "object",
  properties: { limit, group_policy, ...properties },
  patternProperties: Object.fromEntries(keys.map((key) => [`^${key}(${suffix})?$`, text])),
  additionalProperties: false,
});

const from1_25 = ["resources", "required", "member_of"];
const from1_31 = [...from1_25, "in_tree"];

/** Query string of GET /allocation_candidates. */
export const listCandidatesSchemas = {
  "1.10": plain({}),
  "1.16": plain({ limit }),
  "1.17": plain({ limit, required: text }),
  "1.21": plain({ limit, required: text, member_of: text }),
  "1.25": grouped(from1_25, NUMBER_SUFFIX_PATTERN),
  "1.31": grouped(from1_31, NUMBER_SUFFIX_PATTERN),
  "1.33": grouped(from1_31, NAME_SUFFIX_PATTERN),
  "1.35": grouped(from1_31, NAME_SUFFIX_PATTERN, { root_required: text }),
  "1.36": grouped(from1_31, NAME_SUFFIX_PATTERN, { root_required: text, same_subtree: text }),
};
