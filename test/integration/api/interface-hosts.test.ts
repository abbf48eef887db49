import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { ConsoleAnswer, ConsoleQuestion } from "../../../proto/gen/berth/cell.ts";
import { answerInterfaces } from "../../rigs/answer-interfaces.ts";
import { ApiRig } from "./api-rig.ts";

let rig: ApiRig;
let asked: readonly ConsoleQuestion[];
let answer: (question: ConsoleQuestion) => ConsoleAnswer["answer"];
beforeEach(async () => {
  rig = await ApiRig.start();
  answer = () => SET;
  asked = await answerInterfaces(rig.cell("north").bus, "north", (question) => answer(question));
});
afterEach(() => rig.close());

const SET = { $case: "interfacesSet", value: true } as const;
const REFUSED = { $case: "interfacesRefused", value: "all slots are taken" } as const;

async function serverWithPort() {
  const server = await rig.bootActive("north", 0);
  const port: string = (await rig.post("/network/v2.0/ports", { port: { network_id: randomUUID() } })).json().port.id;
  const path = `/v2.1/servers/${server}/os-interface`;
  const attach = () => rig.post(path, { interfaceAttachment: { port_id: port } });
  const detach = () => rig.delete(`${path}/${port}`);
  const ports = async () =>
    (await rig.get(path)).json().interfaceAttachments.map(({ port_id }: { readonly port_id: string }) => port_id);
  const owner = async (): Promise<string> => (await rig.get(`/network/v2.0/ports/${port}`)).json().port.device_id;
  return { server, port, attach, detach, ports, owner };
}
const interfacesOf = (questions: readonly ConsoleQuestion[]) =>
  questions.map(({ interfaces }) => interfaces?.interfaces.map(({ portId, slot }) => `${portId}@${slot}`));

test("the host is told all interfaces after an attachment, and before and after a detachment", async () => {
  const { server, port, attach, detach, ports } = await serverWithPort();
  expect((await attach()).statusCode).toBe(200);
  expect(interfacesOf(asked)).toEqual([[`${port}@1`]]);
  const { host, serverUuid, attemptId, revision } = asked[0]!;
  expect({ host, serverUuid, isNamed: attemptId !== "" }).toEqual({
    host: "host-0",
    serverUuid: server,
    isNamed: true,
  });
  expect((await detach()).statusCode).toBe(202);
  expect(interfacesOf(asked).slice(1)).toEqual([[], []]);
  expect(asked[2]!.revision).toBeGreaterThan(revision);
  expect(await ports()).toEqual([]);
});

test("a port for which the host has no interface is released again, with the host's reason", async () => {
  answer = () => REFUSED;
  const { attach, ports, owner } = await serverWithPort();
  const refused = await attach();
  expect([refused.statusCode, refused.json().conflictingRequest.message]).toEqual([
    409,
    expect.stringContaining("all slots are taken"),
  ]);
  expect([await ports(), await owner()]).toEqual([[], ""]);
});

test("a port stays with its server when the guest does not release the interface, and when the host is silent", async () => {
  const { port, attach, detach, ports, owner, server } = await serverWithPort();
  await attach();
  answer = ({ interfaces }) => (interfaces?.interfaces.length === 0 ? REFUSED : SET);
  const refused = await detach();
  expect([refused.statusCode, refused.json().conflictingRequest.message]).toEqual([
    409,
    expect.stringContaining("all slots are taken"),
  ]);
  // The guest may have released another interface in vain, so it gets all of its server's again.
  expect(interfacesOf(asked).at(-1)).toEqual([`${port}@1`]);
  answer = () => ({ $case: "failed", value: "the agent of its host did not answer in time" });
  expect((await detach()).statusCode).toBe(503);
  expect([await ports(), await owner()]).toEqual([[port], server]);
});

test("an attachment succeeds although the host is silent, since the guest gets the interface at its next start", async () => {
  answer = () => ({ $case: "away", value: true });
  const { port, attach, ports } = await serverWithPort();
  expect((await attach()).statusCode).toBe(200);
  expect(await ports()).toEqual([port]);
});

test("a refusal because of another call's later revision is followed by another try with the present ports", async () => {
  const { server, port, attach, ports } = await serverWithPort();
  let changes = 0;
  answer = () => {
    // Another call has changed the server.
    changes = 1;
    answer = () => SET;
    return { $case: "interfacesRefused", value: "a later order was given" };
  };
  const { store } = rig.cell("north");
  const read = store.servers.bind(store);
  store.servers = async (uuids) =>
    (await read(uuids)).map((row) => (row.uuid === server ? { ...row, revision: row.revision + changes } : row));
  expect((await attach()).statusCode).toBe(200);
  expect(interfacesOf(asked)).toEqual([[`${port}@1`], [`${port}@1`]]);
  expect(await ports()).toEqual([port]);
});
