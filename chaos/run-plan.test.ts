import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, expect, test } from "vitest";
import type { ChaosCloud, Death } from "./chaos-cloud.ts";
import { parsePlan } from "./read-plan.ts";
import { BrokenOffError, runPlan } from "./run-plan.ts";

/** How the fake API misbehaves. */
interface Manners {
  /** Status with which the first create is answered, though it is carried out. */
  readonly createStatus?: number;
  /** Status with which the first delete is answered, though it is not carried out. */
  readonly deleteStatus?: number;
  /** Whether builds end only when the audit begins. */
  readonly slow?: boolean;
  /** Whether deleted servers are back as soon as a client lists servers. */
  readonly undead?: boolean;
  /** Status with which lists are answered. */
  readonly listStatus?: number;
  /** Parts that die once the first server is asked for. */
  readonly dying?: readonly Death[];
}

interface Row {
  readonly id: string;
  readonly name: string;
  gone: boolean;
}

/** The least that a run needs of an API and of a cloud. Servers are in this process' memory, and become ACTIVE at once. */
class PretendedCloud {
  readonly rows: Row[] = [];
  readonly server: Server;
  readonly #manners: Manners;
  #deaths: readonly Death[] = [];
  #creates = 0;
  #deletes = 0;
  #audited = false;

  constructor(manners: Manners) {
    this.#manners = manners;
    this.server = createServer(async (request, response) => {
      const [status, body] = await this.#answer(request);
      response.writeHead(status).end(JSON.stringify(body));
    });
  }

  get cloud(): ChaosCloud {
    const nothing = async () => {};
    const audit = async () => {
      this.#audited = true;
      const counts = {
        ...{ providers: 0, consumers: 0, servers: 0, requests: 0, hosts: 0, hostsAsked: 0 },
        attachments: null,
      };
      return { violations: [], cells: [], unread: {}, unreadGuests: {}, unreadCinder: null, counts };
    };
    return {
      ...{
        target: "local",
        cells: [],
        parts: [],
        links: [],
        deaths: () => this.#deaths,
        logs: async () => [],
        close: nothing,
      },
      apiUrls: [`http://127.0.0.1:${(this.server.address() as AddressInfo).port}`],
      ...{ flushRedis: nothing, failover: nothing, restoreStandby: nothing, fillDisk: nothing, freeDisk: nothing },
      ...{ makeWhole: nothing, holders: async () => [], audit },
    };
  }

  async #answer(request: IncomingMessage): Promise<readonly [number, object]> {
    const { pathname } = new URL(request.url ?? "", "http://api");
    const id = pathname.split("/")[3] ?? "";
    if (pathname === "/v2.1/flavors") return [409, {}];
    if (pathname.includes("os-instance-actions")) return [404, {}];
    if (request.method === "POST") return this.#create((JSON.parse(await text(request)) as { server: Row }).server);
    if (request.method === "DELETE") return this.#delete(id);
    return id === "" || id === "detail" ? this.#list() : this.#show(id);
  }

  #create({ name }: { readonly name: string }): readonly [number, object] {
    const row = { id: `id-${this.rows.length}`, name, gone: false };
    this.rows.push(row);
    this.#creates += 1;
    this.#deaths = this.#manners.dying ?? [];
    const { createStatus = 202 } = this.#manners;
    return [this.#creates === 1 ? createStatus : 202, { server: { id: row.id } }];
  }

  #delete(id: string): readonly [number, object] {
    this.#deletes += 1;
    const { deleteStatus } = this.#manners;
    if (this.#deletes === 1 && deleteStatus !== undefined) return [deleteStatus, {}];
    for (const row of this.rows) if (row.id === id) row.gone = true;
    return [204, {}];
  }

  #list(): readonly [number, object] {
    const { undead = false, listStatus = 200 } = this.#manners;
    if (undead) for (const row of this.rows) row.gone = false;
    return [listStatus, { servers: this.rows.filter(({ gone }) => !gone) }];
  }

  #show(id: string): readonly [number, object] {
    const row = this.rows.find((one) => one.id === id && !one.gone);
    const isBuilt = !(this.#manners.slow ?? false) || this.#audited;
    return row ? [200, { server: { ...row, status: isBuilt ? "ACTIVE" : "BUILD" } }] : [404, {}];
  }
}

let pretended: PretendedCloud;
afterEach(() => {
  pretended.server.closeAllConnections();
  pretended.server.close();
});

async function run(manners: Manners, signal = new AbortController().signal) {
  pretended = new PretendedCloud(manners);
  await new Promise<void>((resolve) => pretended.server.listen(0, "127.0.0.1", resolve));
  // Servers that end at once may still take long on a busy machine.
  const settle = manners.slow === true ? "500ms" : "60s";
  const plan = parsePlan(
    `{ name: p, about: a, duration: 5s, settle: ${settle}, load: { clients: 1, creates: 2, next: accepted } }`,
    "test",
  );
  return runPlan({ plan, cloud: pretended.cloud, seed: 1, signal });
}

const left = () => pretended.rows.filter(({ gone }) => !gone);

test("a server whose create was not answered is found by its name, waited for and deleted", async () => {
  const { failures, history } = await run({ createStatus: 503 });
  expect(failures).toEqual([]);
  expect(history.filter(({ what }) => what === "found")).toMatchObject([{ id: 1, server: "id-0" }]);
  expect([pretended.rows.length, left()]).toEqual([2, []]);
});

test("a server that exists after its create was refused fails the run", async () => {
  const { failures } = await run({ createStatus: 400 });
  expect(failures).toEqual([expect.stringContaining("server id-0 exists, but its create was refused")]);
});

test("a delete that got no clear answer during the sweep is repeated", async () => {
  const { failures } = await run({ deleteStatus: 503 });
  expect([failures, left()]).toEqual([[], []]);
});

test("a server process that dies by itself fails the run, a service does not, and the history records both", async () => {
  const [nats, api] = ["cell1-nats", "api-1"].map((part) => ({ part, isServer: part !== "api-1", words: "killed" }));
  const { failures, history } = await run({ dying: [nats!, api!] });
  expect(failures).toEqual(["cell1-nats, a server that the cloud needs, ended on its own: killed"]);
  expect(history.filter(({ what }) => what === "died")).toMatchObject([{ part: "cell1-nats" }, { part: "api-1" }]);
});

test("servers that end only after the allowed time fail the run", async () => {
  const { failures } = await run({ slow: true });
  expect(failures.join()).toContain("2 servers had not ended");
});

test("servers that reappear after all have been deleted fail the run", async () => {
  const { failures } = await run({ undead: true });
  expect(failures).toHaveLength(2);
  expect(failures[0]).toContain("server id-0 exists again after it was deleted");
});

test("when the API does not serve after the faults, the run is broken off", async () => {
  const broken = await run({ listStatus: 400 }).catch((error: unknown) => error);
  expect(broken).toBeInstanceOf(BrokenOffError);
  expect((broken as BrokenOffError).cause).toMatchObject({ code: "not-served" });
});

test("a run that is broken off does not keep asking an API that gives no answer", async () => {
  const ending = new AbortController();
  const running = run({ listStatus: 503 }, ending.signal);
  ending.abort(new Error("interrupted"));
  await expect(running).rejects.toThrow("interrupted: interrupted");
});
