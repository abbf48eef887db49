import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Flavor, ServerSpec } from "../../../../proto/gen/berth/shared.ts";
import { serverSpec } from "../../../../test/contract/cell-fixtures.ts";
import { freshDatabase, type TestDatabase } from "../../../../test/rigs/databases.ts";
import { createPool } from "../../client/pool.ts";

let database: TestDatabase;
let pool: ReturnType<typeof createPool>;
beforeAll(async () => {
  database = await freshDatabase("cell");
  pool = createPool({ url: database.url, applicationName: "message field test" });
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

async function fieldsOf(spec: Uint8Array): Promise<readonly (string | undefined)[]> {
  const { rows } = await pool.query<Readonly<Record<"flavor" | "image" | "key", Buffer | null>>>(
    "select message_field(message_field($1, 5), 1) as flavor, message_field($1, 6) as image, message_late_field($1, 24) as key",
    [Buffer.from(spec)],
  );
  return [rows[0]?.flavor, rows[0]?.image, rows[0]?.key].map((value) => value?.toString());
}

test.each([
  ["short ones", {}, ["1", "image-1"]],
  ["a name of more than 127 bytes", { name: "ü".repeat(255) }, ["1", "image-1"]],
  ["no image", { imageRef: "" }, ["1", undefined]],
  ["no flavor", { flavor: undefined }, [undefined, "image-1"]],
  [
    "long ones",
    { flavor: Flavor.fromPartial({ id: "f".repeat(255) }), imageRef: "i".repeat(200) },
    ["f".repeat(255), "i".repeat(200)],
  ],
  [
    "large extra specs",
    { flavor: Flavor.fromPartial({ id: "x", extraSpecs: { a: "b".repeat(40_000) } }) },
    ["x", "image-1"],
  ],
])("the flavor and the image of a spec are found: %s", async (_title, fields, found) => {
  const spec = { ...serverSpec(1), ...fields };
  expect(await fieldsOf(ServerSpec.encode(spec).finish())).toEqual([...found, undefined]);
});

test.each([
  ["a short one", { keyName: "web" }],
  ["one behind an early field of more than 127 bytes", { keyName: "web", name: "n".repeat(200) }],
  ["a long one behind a long description", { keyName: "ü".repeat(255), description: "d".repeat(255) }],
  ["one between other late fields", { keyName: "web", tags: ["a", "b"], userData: "x".repeat(60_000), launchIndex: 7 }],
])("the key of a spec is found: %s", async (_title, fields) => {
  const spec = { ...serverSpec(1), ...fields };
  expect((await fieldsOf(ServerSpec.encode(spec).finish()))[2]).toBe(fields.keyName);
});

test("bytes that are no message, or a part of one, are read without an error and without a walk beyond their end", async () => {
  const spec = ServerSpec.encode(serverSpec(1, { name: "n".repeat(200), keyName: "k".repeat(200) })).finish();
  const broken = [...spec.keys()].map((end) => spec.subarray(0, end));
  for (const bytes of [...broken, ...Array.from({ length: 300 }, () => randomBytes(40))]) await fieldsOf(bytes);
});
