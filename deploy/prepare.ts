import { createNatsBus } from "../adapters/nats/nats-bus.ts";
import { apiStreams } from "../adapters/nats/streams.ts";
import { putCellRecord, readCellRecords } from "../adapters/postgres/api/cell-records.ts";
import { claimCellNameAt } from "../adapters/postgres/schema/claim-cell-name.ts";
import { migrate } from "../adapters/postgres/schema/migrate.ts";

const BUS_UP_MS = 60_000;

/** A required variable of the environment. */
function given(name: string): string {
  const value = process.env[name];
  if (value === undefined || value === "") throw new Error(`the environment variable ${name} is missing`);
  return value;
}

/**
 * Sets up a deployment's databases and queue and registers its cells, as `berth db migrate` and `berth cell add` do for one at a time.
 * Existing parts stay as they are. Each cell in BERTH_CELLS has the variables BERTH_<CELL>_DATABASE_URL and BERTH_<CELL>_NATS_URL.
 */
async function prepare(): Promise<void> {
  const databaseUrl = given("BERTH_DATABASE_URL");
  await migrate(databaseUrl, "api");
  const bus = createNatsBus({ url: given("BERTH_NATS_URL"), name: "berth prepare" });
  try {
    await bus.whenConnected(BUS_UP_MS);
    await bus.ensureStreams(apiStreams);
  } finally {
    await bus.close();
  }
  const known = new Map((await readCellRecords(databaseUrl)).map((cell) => [cell.name, cell]));
  for (const name of given("BERTH_CELLS").split(",")) {
    const prefix = `BERTH_${name.toUpperCase().replaceAll("-", "_")}`;
    const urls = { databaseUrl: given(`${prefix}_DATABASE_URL`), natsUrl: given(`${prefix}_NATS_URL`) };
    const cell = { name, ...urls, disabled: known.get(name)?.disabled ?? false };
    await migrate(cell.databaseUrl, "cell");
    await claimCellNameAt(cell.databaseUrl, name);
    await putCellRecord(databaseUrl, cell);
    process.stdout.write(`${name} is ready\n`);
  }
}

await prepare();
