import { writeFileSync } from "node:fs";
import { ensureDatabase, withClient } from "../adapters/postgres/client/databases.ts";
import { startEmbedded } from "../adapters/postgres/embedded/embedded.ts";
import { describeSchema } from "../adapters/postgres/schema/describe-schema.ts";
import { migrate } from "../adapters/postgres/schema/migrate.ts";
import { describeRevisions, readSchemaFiles, schemaDirectory } from "../adapters/postgres/schema/schema-files.ts";

// Lists the current texts of the functions, and describes the databases that the migrations and functions make.
const server = await startEmbedded({ durable: false });
try {
  for (const kind of ["api", "cell"] as const) {
    const directory = schemaDirectory(kind);
    const { functions } = readSchemaFiles(directory);
    writeFileSync(new URL("functions/revisions.txt", directory), describeRevisions(functions));
    await ensureDatabase(server.url("postgres"), kind);
    await migrate(server.url(kind), kind);
    const schema = await withClient(server.url(kind), (client) => describeSchema(client));
    writeFileSync(new URL("schema.sql", directory), schema);
  }
} finally {
  await server.stop();
}
