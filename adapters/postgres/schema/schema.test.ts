import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { freshDatabase } from "../../../test/rigs/databases.ts";
import { withClient } from "../client/databases.ts";
import { describeSchema } from "./describe-schema.ts";
import { describeRevisions, readSchemaFiles, schemaDirectory } from "./schema-files.ts";

const read = (kind: "api" | "cell", file: string) => readFileSync(new URL(file, schemaDirectory(kind)), "utf8");

for (const kind of ["api", "cell"] as const) {
  test(`${kind}/schema.sql is what a migrated database has: \`npm run schema\` writes it`, async () => {
    const database = await freshDatabase(kind);
    try {
      expect(await withClient(database.url, (client) => describeSchema(client))).toBe(read(kind, "schema.sql"));
    } finally {
      await database.drop();
    }
  });

  test(`${kind}/functions/revisions.txt lists the current texts: \`npm run schema\` writes it`, () => {
    const { functions } = readSchemaFiles(schemaDirectory(kind));
    expect(describeRevisions(functions)).toBe(read(kind, "functions/revisions.txt"));
  });
}
