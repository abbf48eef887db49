import { randomUUID } from "node:crypto";
import { afterEach, expect, test } from "vitest";
import { OWN_NAME } from "../../core/stores/networking.ts";
import { networkingContract } from "../../test/contract/networking.contract.ts";
import type { FakeNeighbour } from "../../test/rigs/fake-neighbour.ts";
import { startFakeNeutron } from "../../test/rigs/fake-neutron.ts";
import { withServiceLogin } from "../../test/rigs/with-service-login.ts";
import { MemoryNetworking } from "../memory/memory-networking.ts";
import type { NeighbourClient } from "./neighbour-client.ts";
import { NEUTRON, NeutronClient } from "./neutron-client.ts";

let neutron: FakeNeighbour | null = null;
let client: NeighbourClient | null = null;
afterEach(async () => {
  await client?.close();
  await neutron?.close();
});

async function overHttp(pages: Parameters<typeof startFakeNeutron>[1] = {}) {
  const twin = new MemoryNetworking({ newId: randomUUID });
  neutron = await startFakeNeutron(twin, pages);
  client = withServiceLogin({ ...NEUTRON, url: neutron.url, timeoutMs: 5_000, triesMax: 2 });
  return { networking: new NeutronClient(client), twin };
}

networkingContract("Neutron over HTTP", () => overHttp());
networkingContract("Neutron over HTTP with one item on each page", () => overHttp({ pageMax: 1 }));

test.each([
  ["pages that do not end", { rel: "next", href: "http://neutron/v2.0/ports?marker=p" }, "has more than 1000 pages"],
  ["a next page without an address", { rel: "next" }, "goes on at no address"],
])("%s are a wrong answer", async (_, link, why) => {
  const body = { ports: [{ id: "p" }], ports_links: [link] };
  const call = async () => ({ status: 200, headers: {}, body, characters: JSON.stringify(body).length });
  await expect(new NeutronClient({ call }).ports({}, OWN_NAME)).rejects.toMatchObject({
    code: "bad-answer",
    message: expect.stringContaining(why),
  });
});

test("a list whose pages are too large together is a wrong answer, before they use up the memory of this process", async () => {
  let pages = 0;
  const body = { ports: [{ id: "p" }], ports_links: [{ rel: "next", href: "http://neutron/v2.0/ports?marker=p" }] };
  const call = async () => {
    pages += 1;
    return { status: 200, headers: {}, body, characters: 16_000_000 };
  };
  await expect(new NeutronClient({ call }).ports({}, OWN_NAME)).rejects.toMatchObject({
    code: "bad-answer",
    message: "Neutron's list of ports has more than 40000000 characters",
  });
  expect(pages).toBe(3);
});

test("a page with very many items is read like any other", async () => {
  const body = { ports: Array.from({ length: 300_000 }, () => ({ id: "p" })) };
  const call = async () => ({ status: 200, headers: {}, body, characters: 0 });
  expect(await new NeutronClient({ call }).ports({}, OWN_NAME)).toHaveLength(300_000);
});
