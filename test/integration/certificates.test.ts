import { execFileSync } from "node:child_process";
import { chownSync, cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createGrpcDialer } from "../../adapters/grpc/grpc-dialer.ts";
import { createGrpcAgentListener } from "../../adapters/grpc/grpc-listener.ts";
import { createNatsBus } from "../../adapters/nats/nats-bus.ts";
import { withClient } from "../../adapters/postgres/client/databases.ts";
import { type EmbeddedPostgres, startEmbedded } from "../../adapters/postgres/embedded/embedded.ts";
import { choosePostgresUser } from "../../adapters/postgres/embedded/embedded-user.ts";
import type { AgentStream } from "../../core/agent/link.ts";
import { natsConfig } from "../../deploy/nats-config.ts";
import { AgentMessage } from "../../proto/gen/berth/agent.ts";
import { type ChildServer, startChildServer } from "../../runtime/child-server.ts";
import { eventually } from "../rigs/eventually.ts";

const BERTH = join(import.meta.dirname, "../../bin/berth");
const HOST = "127.0.0.1";

let dir: string;
const files = (of: string, cell: string) => ({
  ca: join(dir, cell, `${cell}-ca.pem`),
  cert: join(dir, cell, `${of}.pem`),
  key: join(dir, cell, `${of}-key.pem`),
});

/** Two unrelated cells, each with certificates for this machine. */
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), "berth-certs-"));
  for (const cell of ["east", "west"]) {
    const args = ["certs", "--out", join(dir, cell), "--cells", cell, "--names", HOST];
    const printed = execFileSync(BERTH, args, { encoding: "utf8" });
    expect(printed).toMatch(new RegExp(`^${cell}-agent\\.pem\\t\\S+\\tmade$`, "m"));
  }
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

describe("agents and conductors", () => {
  /** The result of dialling: the received message, or the reason why none arrived. */
  async function dial(of: { readonly listener: string; readonly agent: string | null }): Promise<string> {
    const listener = await createGrpcAgentListener({
      listen: `${HOST}:0`,
      tls: files(`${of.listener}-${HOST}`, of.listener),
    });
    const tls = of.agent === null ? null : files(`${of.agent}-agent`, of.agent);
    const dialer = createGrpcDialer({ tls, connectTimeoutMs: 3_000 });
    try {
      let answer = "";
      listener.onAgent((stream: AgentStream) => {
        stream.onMessages(() => {
          answer ||= "arrived";
        });
        stream.onClose(() => undefined);
      });
      const stream = dialer.dial(listener.address);
      stream.onMessages(() => undefined);
      stream.onClose((reason) => {
        answer ||= reason;
      });
      stream.send(AgentMessage.fromPartial({ body: { $case: "heartbeat", value: {} } }));
      return await eventually("an end of the dial", () => (answer === "" ? null : answer));
    } finally {
      dialer.close();
      await listener.close();
    }
  }

  test("trust each other with certificates of one cell", async () => {
    expect(await dial({ listener: "east", agent: "east" })).toBe("arrived");
  });

  test.each([
    ["another cell", "west"],
    ["nobody", null],
  ])("reject an agent with a certificate of %s", async (_, agent) => {
    expect(await dial({ listener: "east", agent })).not.toBe("arrived");
  });
});

describe("NATS", () => {
  let server: ChildServer;
  let password = "";

  beforeAll(async () => {
    password = "secret";
    const { ca, cert, key } = files(`east-${HOST}`, "east");
    const tls = `tls { cert_file: "${cert}", key_file: "${key}", ca_file: "${ca}", verify: true }\n`;
    server = await startChildServer({
      command: "nats-server",
      answer: "INFO ",
      args(port) {
        const file = join(dir, "nats.conf");
        const config = natsConfig({ apiPassword: password, cells: [], storeDir: join(dir, "nats"), host: HOST, port });
        writeFileSync(file, config + tls, { mode: 0o600 });
        return ["-c", file];
      },
    });
  });
  afterAll(() => server?.stop());

  /** The result of the first attempt to connect. */
  async function connect(scheme: string, ca: string, own: string | null): Promise<string> {
    const by = own === null ? "" : `&cert=${files(`${own}-agent`, own).cert}&key=${files(`${own}-agent`, own).key}`;
    const seen: string[] = [];
    const url = `${scheme}://api:${password}@${HOST}:${server.port}?ca=${files(HOST, ca).ca}${by}`;
    const bus = createNatsBus({
      url,
      name: "test",
      onEvent: (event) => seen.push(event.kind === "disconnected" ? event.reason : event.kind),
    });
    try {
      return await eventually("an attempt", () => seen[0]);
    } finally {
      await bus.close();
    }
  }

  test.each(["tls", "nats"])("and a bus with its cell's CA trust each other (%s://)", async (scheme) => {
    expect(await connect(scheme, "east", "east")).toBe("connected");
  });

  test("is not trusted by a bus of another cell", async () => {
    expect(await connect("tls", "west", "east")).toMatch(/certificate/i);
  });

  test.each(["west", null])("rejects a bus with a certificate of %s", async (own) => {
    expect(await connect("tls", "east", own)).not.toBe("connected");
  });
});

describe("Postgres", () => {
  let server: EmbeddedPostgres;
  let home: string;

  beforeAll(async () => {
    // Postgres's own account must be able to read the files, and no one else may.
    home = mkdtempSync(join(tmpdir(), "berth-certs-postgres-"));
    const user = choosePostgresUser();
    const { cert, key } = files(`east-${HOST}`, "east");
    for (const file of [cert, key]) cpSync(file, join(home, file === key ? "key.pem" : "cert.pem"));
    if (user !== null) for (const path of [home, join(home, "key.pem")]) chownSync(path, user.uid, user.gid);
    const settings = { shared_buffers: "16MB", max_connections: "20" };
    const ssl = { ssl: "on", ssl_cert_file: join(home, "cert.pem"), ssl_key_file: join(home, "key.pem") };
    server = await startEmbedded({ durable: false, settings: { ...settings, ...ssl } });
  });
  afterAll(async () => {
    await server?.stop();
    rmSync(home, { recursive: true, force: true });
  });

  const ask = (ca: string) =>
    withClient(`${server.url("postgres")}?sslmode=verify-full&sslrootcert=${files(HOST, ca).ca}`, async (client) => {
      const { rows } = await client.query<{ ssl: boolean }>("select ssl from pg_stat_ssl where pid = pg_backend_pid()");
      return rows[0]?.ssl;
    });

  test("is trusted by a client that has its cell's CA", async () => {
    expect(await ask("east")).toBe(true);
  });

  test("is not trusted by a client that has another cell's CA", async () => {
    await expect(ask("west")).rejects.toThrow(/certificate/i);
  });
});
