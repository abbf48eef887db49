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
  const { rows } = await pool.query<{ flavor: Buffer | null; image: Buffer | null }>(
    "select message_field(message_field($1, 5), 1) as flavor, message_field($1, 6) as image",
    [Buffer.from(spec)],
  );
  return [rows[0]?.flavor?.toString(), rows[0]?.image?.toString()];
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
  expect(await fieldsOf(ServerSpec.encode(spec).finish())).toEqual(found);
});

test("bytes that are no message, or a part of one, are read without an error and without a walk beyond their end", async () => {
  const spec = ServerSpec.encode(serverSpec(1, { name: "n".repeat(200) })).finish();
  const broken = [...spec.keys()].map((end) => spec.subarray(0, end));
  for (const bytes of [...broken, ...Array.from({ length: 300 }, () => randomBytes(40))]) await fieldsOf(bytes);
});
