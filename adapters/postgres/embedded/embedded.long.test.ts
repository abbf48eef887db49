import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ensureDatabase, withClient } from "../client/databases.ts";
import { type EmbeddedPostgres, startEmbedded } from "./embedded.ts";
import { removeCluster } from "./embedded-cluster.ts";

let dataDir: string;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "berth-embedded-"));
});
afterEach(() => removeCluster(dataDir));

const options = () => ({ dataDir, durable: false });

async function count(url: string): Promise<number> {
  return withClient(url, async (client) => (await client.query("select * from kept")).rowCount ?? 0);
}

/** Starts another process that serves the directory, and resolves with its URL once it serves. */
async function startOwner(): Promise<{ url: string; kill: () => Promise<void> }> {
  const script = `
    const { startEmbedded } = await import(${JSON.stringify(new URL("./embedded.ts", import.meta.url).href)});
    const server = await startEmbedded({ dataDir: process.argv[1], durable: false });
    process.stdout.write(server.url("postgres"));
    setInterval(() => undefined, 1000);`;
  const owner = spawn(process.execPath, ["--input-type=module", "-e", script, dataDir], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [url] = (await once(owner.stdout, "data")) as [Buffer];
  return {
    url: String(url),
    kill: async () => {
      owner.kill("SIGKILL");
      await once(owner, "exit");
    },
  };
}

test("keeps its data, its password and its port from one start to the next", async () => {
  const first = await startEmbedded(options());
  await ensureDatabase(first.url("postgres"), "shop");
  const url = first.url("shop");
  await withClient(url, (client) => client.query("create table kept (); insert into kept default values"));
  await first.stop();
  await first.stop();
  const second = await startEmbedded(options());
  try {
    expect(second.url("shop")).toBe(url);
    expect(await count(url)).toBe(1);
    const settings = await withClient(url, (client) => client.query("select current_setting('wal_level') as level"));
    expect(settings.rows).toEqual([{ level: "logical" }]);
  } finally {
    await second.stop();
  }
});

test("refuses a directory that another process serves, and names that process", async () => {
  const owner = await startOwner();
  try {
    await expect(startEmbedded(options())).rejects.toMatchObject({
      code: "in-use",
      message: expect.stringContaining(dataDir),
    });
  } finally {
    await owner.kill();
    await (await startEmbedded(options())).stop(); // This waits until the owner's server is gone.
  }
});

test("the server ends when its owner is killed, and the next owner finds what was committed", async () => {
  const owner = await startOwner();
  await withClient(owner.url, (client) => client.query("create table kept (); insert into kept default values"));
  await owner.kill();
  await vi.waitFor(() => expect(withClient(owner.url, async () => undefined)).rejects.toThrow(), { timeout: 20_000 });
  const next = await startEmbedded(options());
  expect(await count(next.url("postgres"))).toBe(1);
  await next.stop();
});

test("two starts on an empty directory make one cluster, and one of them serves it", async () => {
  const results = await Promise.allSettled([startEmbedded(options()), startEmbedded(options())]);
  const started = results.filter((result) => result.status === "fulfilled");
  await Promise.all(started.map((result) => result.value.stop()));
  expect(started).toHaveLength(1);
  expect(results.find((result) => result.status === "rejected")?.reason).toMatchObject({ code: "in-use" });
  expect(readdirSync(dataDir).filter((name) => name.startsWith("cluster"))).toEqual(["cluster"]);
});

test("a lock left by a machine that lost power does not count, even if its number now belongs to a living process", async () => {
  await (await startEmbedded(options())).stop();
  writeFileSync(join(dataDir, "cluster/postmaster.pid"), `${process.pid}\n`);
  await (await startEmbedded(options())).stop();
});

test("reports a server that ended without having been stopped", async () => {
  const server = await startEmbedded(options());
  process.kill(Number(readFileSync(join(dataDir, "cluster/postmaster.pid"), "utf8").split("\n")[0]), "SIGQUIT");
  expect(await server.died).toContain("the embedded Postgres ended");
});

test("a temporary server leaves nothing behind", async () => {
  const server = await startEmbedded({ durable: false });
  expect(existsSync(server.dataDir)).toBe(true);
  await server.stop();
  expect(existsSync(server.dataDir)).toBe(false);
});

test.runIf(process.platform === "linux")(
  "a server that quits while it is paused leaves nothing in memory, and its files can be served again",
  async () => {
    const server = await startEmbedded(options());
    await withClient(server.url("postgres"), (client) => client.query("create table kept (id int)"));
    const shared = [...readFileSync(`/proc/${server.pid}/maps`, "utf8").matchAll(/\/dev\/shm\/\S+/g)].map(
      ([path]) => path,
    );
    expect(shared.length).toBeGreaterThan(0);
    server.pause();
    await server.quit();
    await server.quit();
    expect(shared.filter((path) => existsSync(path))).toEqual([]);
    const next = await startEmbedded(options());
    const { rowCount } = await withClient(next.url("postgres"), (client) => client.query("select from kept"));
    await next.stop();
    expect(rowCount).toBe(0);
  },
);

test("a cluster that is copied from a pattern has a password of its own, and the pattern keeps none of its data", async () => {
  const patterns = join(dataDir, "patterns");
  mkdirSync(patterns);
  vi.stubEnv("BERTH_CLUSTER_PATTERNS", patterns);
  const servers: EmbeddedPostgres[] = [];
  try {
    for (const durable of [false, false, true]) {
      servers.push(await startEmbedded({ durable }));
      expect(readdirSync(patterns)).toEqual([expect.stringMatching(/^[0-9a-f]{16}$/)]);
    }
    for (const server of servers) {
      await withClient(server.url("postgres"), (client) => client.query("create table kept ()"));
      const others = servers.filter((other) => other !== server);
      for (const other of others) {
        const url = Object.assign(new URL(other.url("postgres")), { port: server.port });
        await expect(withClient(url.href, () => Promise.resolve())).rejects.toThrow("password authentication failed");
      }
    }
  } finally {
    vi.unstubAllEnvs();
    await Promise.all(servers.map((server) => server.stop()));
  }
});
