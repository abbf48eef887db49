import type { VersionedSchemas } from "../validate.ts";

interface QuerySchema {
  readonly properties: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly patternProperties?: Readonly<Record<string, unknown>>;
  readonly required?: readonly string[];
}

const ABOUT: Readonly<Record<string, string>> = {
  name: "The name; for traits `in:A,B` or `startswith:PREFIX`.",
  uuid: "The provider's UUID.",
  member_of: "An aggregate's UUID, or `in:` with several; `!` and `!in:` for not. Repeated, all must hold.",
  resources: "Amounts by class, `VCPU:4,MEMORY_MB:2048`.",
  required: "Traits that must be there, divided by commas; `!` before one that must not; `in:` for one of several.",
  in_tree: "A provider's UUID: only its tree.",
  limit: "Most candidates.",
  group_policy: "Whether numbered groups may meet in one provider.",
  root_required: "Traits of the tree's root, `!` before one that it must not have.",
  same_subtree: "Suffixes of groups whose providers must have one of them as their common ancestor.",
  associated: "`true`: only traits that a provider has; `false`: only those that none has.",
  project_id: "The project.",
  user_id: "A user of the project.",
  consumer_type: "A type of consumers, `all`, or `unknown`.",
};

/** The parameters of a query string, each with the version that brought it and the schema of the newest. */
export function queryParameters(schemas: VersionedSchemas): readonly unknown[] {
  const versions = Object.entries(schemas).map(([since, schema]) => ({ since, schema: schema as QuerySchema }));
  const newest = versions.at(-1)!.schema;
  const names = [...new Set(versions.flatMap(({ schema }) => Object.keys(schema.properties)))];
  const single = names.map((name) => {
    const having = versions.filter(({ schema }) => name in schema.properties);
    return {
      name,
      in: "query",
      required: newest.required?.includes(name) ?? false,
      description: `${ABOUT[name] ?? ""} From ${having[0]!.since} on.`.trim(),
      schema: having.at(-1)!.schema.properties[name],
    };
  });
  return newest.patternProperties === undefined ? single : [...single, groups(newest.patternProperties)];
}

/** Keys that end in a group's suffix have no fixed names, so one exploded object represents all of them. */
function groups(patternProperties: Readonly<Record<string, unknown>>): unknown {
  return {
    name: "groups",
    in: "query",
    required: false,
    style: "form",
    explode: true,
    description:
      "Granular groups: the keys above with a suffix, `resources1=VCPU:1&required1=HW_NUMA_ROOT`. A suffix is a number " +
      "from 1.25 on, up to 64 of a-z, A-Z, 0-9, _ and - from 1.33 on.",
    schema: { type: "object", patternProperties, additionalProperties: false },
  };
}
