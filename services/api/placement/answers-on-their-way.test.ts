import { once } from "node:events";
import { type AddressInfo, connect, type Socket } from "node:net";
import Fastify, { type FastifyInstance } from "fastify";
import { afterAll, beforeAll, expect, test } from "vitest";
import { providerUuid, resourceClass } from "../../../core/ledger/ids.ts";
import { LedgerView } from "../../../core/ledger/ledger-view.ts";
import { Policy } from "../policy/policy.ts";
import type { PlacementDeps } from "./app.ts";
import { authenticateNoauth2 } from "./identity.ts";
import { mountPlacement } from "./mount.ts";
import { legacyDefaults } from "./placement-rules.ts";
import { createViewCandidates } from "./view-candidates.ts";

const VCPU = resourceClass("VCPU");
/** With this many hosts, an answer is far larger than the buffers of sockets. */
const HOSTS = 48_000;
const requestOf = (amount: number) =>
  `GET /allocation_candidates?resources=VCPU:${amount} HTTP/1.1\r\nhost: x\r\nx-auth-token: admin\r\nopenstack-api-version: placement 1.39\r\n\r\n`;

function wideView(): LedgerView {
  const view = new LedgerView();
  view.apply({ kind: "class-known", resourceClass: VCPU });
  const inventory = { total: 100, reserved: 0, minUnit: 1, maxUnit: 100, stepSize: 1, allocationRatio: 1 };
  for (let at = 0; at < HOSTS; at += 1) {
    const uuid = providerUuid(`a0000000-0000-4000-8000-${String(at).padStart(12, "0")}`);
    view.apply({ kind: "provider-put", uuid, name: uuid, parent: null, root: uuid, generation: 0 });
    view.apply({ kind: "inventory-put", provider: uuid, resourceClass: VCPU, inventory, used: 0 });
  }
  return view;
}

let http: FastifyInstance;
let port: number;
beforeAll(async () => {
  http = Fastify();
  const cell = { view: wideView(), source: { waitUntilSeen: async () => true } };
  const bounds = { strategy: "depth-first", candidatesMax: -1, stepsMax: 1e7, freshnessDeadlineMs: 1_000 } as const;
  const deps: PlacementDeps = {
    // Searches do not use the store.
    store: {} as PlacementDeps["store"],
    source: createViewCandidates(() => [cell], bounds),
    authenticate: authenticateNoauth2,
    policy: new Policy(legacyDefaults()),
    onUnexpected: (error) => {
      throw error;
    },
    onBoundReached: () => {},
  };
  await mountPlacement(http, deps, "");
  await http.listen({ port: 0 });
  port = (http.server.address() as AddressInfo).port;
});
afterAll(() => http.close());

/** A client that sends requests for these amounts without waiting, and has read only the first bytes. */
async function ask(...amounts: readonly number[]): Promise<{ readonly socket: Socket; readonly first: Buffer }> {
  const socket = connect(port, "localhost");
  socket.write(amounts.map(requestOf).join(""));
  const [first] = (await once(socket, "data")) as [Buffer];
  socket.pause();
  return { socket, first };
}

/** Reads the bodies of `count` answers. */
async function readOn({ socket, first }: Awaited<ReturnType<typeof ask>>, count: number): Promise<readonly string[]> {
  const bodies: string[] = [];
  let read = [first];
  let length = first.length;
  let wanted = 0;
  const takeWhole = (): void => {
    while (bodies.length < count) {
      if (length < wanted) return;
      const bytes = Buffer.concat(read);
      const head = bytes.indexOf("\r\n\r\n");
      const size = head < 0 ? undefined : /content-length: (\d+)/i.exec(bytes.toString("latin1", 0, head))?.[1];
      wanted = size === undefined ? length + 1 : head + 4 + Number(size);
      read = [bytes];
      if (length < wanted) return;
      bodies.push(bytes.toString("latin1", head + 4, wanted));
      read = [bytes.subarray(wanted)];
      length -= wanted;
      wanted = 0;
    }
  };
  takeWhole();
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    read.push(chunk);
    length += chunk.length;
    takeWhole();
    if (bodies.length === count) break;
  }
  return bodies;
}

test("answers to slow clients stay intact while other clients are answered, disconnect, or send several requests at once", {
  timeout: 60_000,
}, async () => {
  const expected = new Map<number, string>();
  for (const amount of [1, 22]) expected.set(amount, (await readOn(await ask(amount), 1))[0]!);
  for (const [amount, body] of expected) {
    expect(body.length).toBeGreaterThan(12_000_000);
    expect(JSON.parse(body).allocation_requests).toHaveLength(HOSTS);
    expect(body).toContain(`"VCPU":${amount}}`);
  }
  const slow = [await ask(1, 22), await ask(22, 1), await ask(1)];
  for (let round = 0; round < 1; round += 1) {
    const broken = await ask(22, 1, 22);
    broken.socket.destroy();
    for (const amount of [22, 1])
      expect((await readOn(await ask(amount), 1))[0] === expected.get(amount), `of ${amount}`).toBe(true);
  }
  const read = await Promise.all([readOn(slow[0]!, 2), readOn(slow[1]!, 2), readOn(slow[2]!, 1)]);
  const wanted = [[1, 22], [22, 1], [1]].map((amounts) => amounts.map((amount) => expected.get(amount)));
  expect(read.map((bodies, at) => bodies.map((body, nth) => body === wanted[at]![nth]))).toEqual([
    [true, true],
    [true, true],
    [true],
  ]);
});
