import { expect, onTestFinished, test } from "vitest";
import { withClient } from "../../adapters/postgres/client/databases.ts";
import { DatabaseServer } from "./database-server.ts";
import { makeScratchDir } from "./scratch-dir.ts";

test("a server that is being restarted when the cloud closes is stopped, too", { timeout: 60_000 }, async () => {
  const dir = makeScratchDir();
  onTestFinished(() => dir.remove());
  const server = await DatabaseServer.open({ name: "postgres", cell: null, dir: dir.path });
  await server.kill();
  const starting = server.start();
  await server.close();
  await starting;
  await expect(withClient(server.url("postgres"), async () => undefined)).rejects.toThrow();
});
