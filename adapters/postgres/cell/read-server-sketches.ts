import type { Pool } from "pg";
import type { ServerSketch, SketchPart, SketchQuery } from "../../../core/stores/cell/listed-servers.ts";
import { queryStored, selectMs } from "../client/store-query.ts";
import { specFieldsDecoder } from "./decode-spec-fields.ts";
import {
  conditionOf,
  eachValue,
  indexedValues,
  inListOfValue,
  namePartOf,
  WITHOUT_HOST,
} from "./indexed-attributes.ts";
import type { StoredServer } from "./read-servers.ts";

type SketchRow = Pick<StoredServer, "uuid" | "created_at_ms"> &
  Partial<Pick<StoredServer, "status" | "task_state" | "host" | "updated_at_ms" | "launched_at_ms" | "spec">>;

/** The columns of each part, and the letter that stands for it in a statement's name. */
const PARTS: Readonly<Record<SketchPart, { readonly columns: string; readonly letter: string }>> = {
  status: { columns: "status, task_state", letter: "s" },
  host: { columns: "host", letter: "h" },
  updatedAt: { columns: selectMs("updated_at"), letter: "u" },
  launchedAt: { columns: selectMs("launched_at"), letter: "l" },
};
const SPEC = { columns: "spec", letter: "m" };

/** Cost: one round trip, and a look at up to `looksMax` entries of an index and one more. The servers are read only if these are all. */
export async function readServerSketches(pool: Pool, query: SketchQuery): Promise<readonly ServerSketch[] | null> {
  const { attribute, orNone = false, others, projectId, looksMax, parts, specFields } = query;
  const values: unknown[] = [looksMax + 1, indexedValues(query)];
  const passes = [
    "status <> 'CLOSED'",
    ...(projectId === null ? [] : [`project_id = $${values.push(projectId)}`]),
    ...others.map((other) => conditionOf(other, values)),
  ].join(" and ");
  // The order is that of the index, so that Postgres uses it. Each value has its own list there.
  const listed = (columns: string, where: string) => {
    const list = (condition: string) =>
      `select ${columns} from servers where ${condition} order by created_at desc, uuid limit $1`;
    const lists = [
      `select l.* from ${eachValue(attribute, "$2")} cross join lateral (
        select l.* from (${list(inListOfValue(attribute))}) l where ${where}
      ) l`,
      ...(orNone ? [`(select l.* from (${list(WITHOUT_HOST)}) l where ${where})`] : []),
    ];
    return lists.join(" union all ");
  };
  const asked = [...parts.map((part) => PARTS[part]), ...(specFields.length === 0 ? [] : [SPEC])];
  const columns = ["uuid", selectMs("created_at"), ...asked.map((part) => part.columns)].join(", ");
  const rows = await queryStored<Partial<SketchRow> & { readonly looked: number }>(pool, {
    name: `sketches_by_${attribute}${orNone ? "_n" : ""}${projectId === null ? "" : "_project"}${asked.length === 0 ? "" : `_with_${asked.map((part) => part.letter).join("")}`}${namePartOf(others)}`,
    text: `select c.looked, s.*
      from (select count(*)::int as looked from (select from (${listed("uuid", "true")}) l limit $1) l) c
      left join lateral (
        select l.* from (${listed(`${columns}, (${passes}) as passes`, "c.looked < $1 and l.passes")}) l
      ) s on true`,
    values,
  });
  if (rows.some(({ looked }) => looked > looksMax)) return null;
  const decode = specFieldsDecoder(specFields);
  return rows
    .filter((row): row is SketchRow & { readonly looked: number } => row.uuid != null)
    .map((row) => sketchOf(row, decode));
}

function sketchOf(row: SketchRow, decode: ReturnType<typeof specFieldsDecoder>): ServerSketch {
  return {
    ...{ uuid: row.uuid, createdAtMs: row.created_at_ms },
    ...(row.status !== undefined && { status: row.status, taskState: row.task_state ?? null }),
    ...(row.host !== undefined && { host: row.host }),
    ...(row.updated_at_ms !== undefined && { updatedAtMs: row.updated_at_ms }),
    ...(row.launched_at_ms !== undefined && { launchedAtMs: row.launched_at_ms }),
    ...(row.spec !== undefined && { spec: decode(row.spec) }),
  };
}
