import { randomUUID } from "node:crypto";
import type { LightMyRequestResponse } from "fastify";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SERVER_ACTIONS } from "../../../services/api/compute/server-actions/server-actions.ts";
import { MINOR_MAX } from "../../../services/api/http/microversion.ts";
import { rangeOf } from "../../../services/api/http/route-facts.ts";
import { hostName } from "../../contract/cell-fixtures.ts";
import { ApiRig } from "./api-rig.ts";
import { ACTION_BODIES, ACTION_ROUTE, FOR_ADMINS, OF_EVERYBODY, OF_PROJECTS, type TenantCase } from "./tenant-cases.ts";

const ALICE = "alice:a";
const BOB = "bob:b";
const ADMIN = "admin:ops";

let rig: ApiRig;
beforeAll(async () => {
  rig = await ApiRig.start({ auth: "noauth2", volumes: "simple" });
});
afterAll(() => rig.close());

const call = (method: string, url: string, who: string, body?: unknown, minor = MINOR_MAX) =>
  rig.api.http.inject({
    method: method as "GET",
    url,
    headers: {
      "x-auth-token": who,
      "openstack-api-version": `compute 2.${minor}`,
      ...(body !== undefined && { "content-type": "application/json" }),
    },
    ...(body !== undefined && { payload: JSON.stringify(body) }),
  });
const post = (url: string, who: string, body: unknown) => call("POST", url, who, body);
/** Calls an action at the last microversion that has it. */
const act = (id: string, who: string, action: string, body: unknown) =>
  call("POST", `/v2.1/servers/${id}/action`, who, { [action]: body }, rangeOf(SERVER_ACTIONS.get(action) ?? {}).until);
const server = (more: object = {}) => ({ server: { name: "web", flavorRef: "1", networks: "none", ...more } });

/** The fields of the answers that the test reads. */
interface Made {
  readonly id: string;
  readonly server: { readonly id: string; readonly fault: { readonly message: string; readonly details?: string } };
  readonly server_group: { readonly id: string };
  readonly port: { readonly id: string };
  readonly volume: { readonly id: string };
  readonly instanceAction: { readonly events: readonly Readonly<Record<string, unknown>>[] };
}

async function made(answer: Promise<LightMyRequestResponse>, status: number): Promise<Made> {
  const { statusCode, body } = await answer;
  expect(statusCode, body).toBe(status);
  return JSON.parse(body);
}

async function bootOf(who: string, more: object = {}): Promise<string> {
  return (await made(post("/v2.1/servers", who, server(more)), 202)).server.id;
}

async function activeOf(who: string, host: number): Promise<string> {
  const uuid = await bootOf(who);
  const task = await rig.dispatch(uuid, "north", [host]);
  await rig.cell("north").store.commitActive([{ ...(await rig.take("north", task)), selection: 0 }]);
  return uuid;
}

/** An answer without ids, because the id differs between another project's resource and an unknown one. */
function told({ statusCode, body }: LightMyRequestResponse, id: string): string {
  return `${statusCode} ${body.replaceAll(id, "ID").replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, "UUID")}`;
}

const routes = () =>
  rig.api.http.knownRoutes!().filter(
    ({ method, url }) => method !== "HEAD" && url.includes(":") && !url.startsWith("/compute/"),
  );

describe("another project's resource", () => {
  let things: Readonly<Record<TenantCase["of"], string>>;
  beforeAll(async () => {
    const group = await made(
      post("/v2.1/os-server-groups", ALICE, { server_group: { name: "g", policy: "affinity" } }),
      200,
    );
    const image = await made(post("/image/v2/images", ALICE, { name: "mine" }), 201);
    const port = await made(post("/network/v2.0/ports", ALICE, { port: { network_id: randomUUID() } }), 201);
    const { volume } = await made(
      post("/volume/v3/volumes", ALICE, { volume: { size: 1, metadata: { a: "b" } } }),
      202,
    );
    things = {
      ...{ server: await activeOf(ALICE, 0), group: group.server_group.id, image: image.id, port: port.port.id },
      volume: volume.id,
    };
  });

  it("is answered like one that does not exist, on every route that names one", async () => {
    for (const { method, url } of routes()) {
      const name = `${method} ${url}`;
      const known = OF_PROJECTS[name];
      if (name === ACTION_ROUTE || OF_EVERYBODY.test(name)) continue;
      if (known === undefined) {
        // Routes that do not belong to a project are only for admins, or no longer there at all (410).
        const path = url.replace(/:\w+/g, "1");
        const { statusCode, body } = await call(
          method,
          path,
          BOB,
          method === "GET" || method === "DELETE" ? undefined : {},
        );
        expect([400, 403, 404, 410], `${name}: ${body}`).toContain(statusCode);
        continue;
      }
      const { of, body, type } = known;
      const version = url.startsWith("/v2.1/images") ? "compute 2.35" : "compute 2.96";
      const ask = (id: string, who: string) =>
        rig.api.http.inject({
          method: method as "GET",
          url: url.replace(":id", id).replace(/:\w+/, things.port),
          headers: {
            "x-auth-token": who,
            "openstack-api-version": version,
            ...(body !== undefined && { "content-type": type ?? "application/json" }),
          },
          ...(body !== undefined && { payload: JSON.stringify(body) }),
        });
      const nothing = randomUUID();
      const [ofAlice, ofNobody] = [await ask(things[of], BOB), await ask(nothing, BOB)];
      expect(ofAlice.statusCode, `${name}: ${ofAlice.body}`).toBe(404);
      expect(told(ofAlice, things[of]), name).toBe(told(ofNobody, nothing));
    }
  });

  it("is in the table above for every route that names one", () => {
    const named = new Set(routes().map(({ method, url }) => `${method} ${url}`));
    for (const name of Object.keys(OF_PROJECTS)) expect(named, name).toContain(name);
    expect([...SERVER_ACTIONS.keys()].toSorted()).toEqual(Object.keys(ACTION_BODIES).toSorted());
  });

  it("is answered like one that does not exist by every action", async () => {
    for (const [action, body] of Object.entries(ACTION_BODIES)) {
      const nothing = randomUUID();
      const [ofAlice, ofNobody] = [await act(things.server, BOB, action, body), await act(nothing, BOB, action, body)];
      expect(told(ofAlice, things.server), action).toBe(told(ofNobody, nothing));
      expect(ofAlice.statusCode, action).toBe(FOR_ADMINS.includes(action) ? 403 : 404);
    }
  });

  it("cannot be a marker of a list, nor an image, group or port of a new server", async () => {
    const asked = async (id: string, of: (id: string) => Promise<LightMyRequestResponse>) => told(await of(id), id);
    const { group, image, port, server: ofAlice } = things;
    const tries: readonly (readonly [id: string, of: (id: string) => Promise<LightMyRequestResponse>])[] = [
      [ofAlice, (id) => call("GET", `/v2.1/servers?marker=${id}`, BOB)],
      [image, (id) => call("GET", `/image/v2/images?marker=${id}`, BOB)],
      [group, (id) => post("/v2.1/servers", BOB, { ...server(), "os:scheduler_hints": { group: id } })],
      [port, (id) => post("/v2.1/servers", BOB, server({ networks: [{ port: id }] }))],
    ];
    for (const [id, of] of tries) {
      const answer = await asked(id, of);
      expect(answer).toMatch(/^400 .*(not be found|not found)/);
      expect(answer).toBe(await asked(randomUUID(), of));
    }
    const own = await activeOf(BOB, 1);
    const attach = (id: string) =>
      post(`/v2.1/servers/${own}/os-interface`, BOB, { interfaceAttachment: { port_id: id } });
    expect(await asked(port, attach)).toBe(await asked(randomUUID(), attach));
    expect(await asked(image, (id) => post("/v2.1/servers", BOB, server({ imageRef: id })))).toMatch(
      /^400 .*Image ID could not be found/,
    );
    expect(await asked(image, (id) => post(`/v2.1/servers/${own}/action`, BOB, { rebuild: { imageRef: id } }))).toMatch(
      /^400 .*Image ID could not be found/,
    );
  });

  it("cannot be an image of a new server where images must be registered, with the message for one that does not exist", async () => {
    const strict = await ApiRig.start({ auth: "noauth2", imageRule: "registered" });
    try {
      const headers = { "x-auth-token": ALICE };
      const { id } = (await strict.post("/image/v2/images", {}, headers)).json();
      const boot = async (imageRef: string) =>
        told(
          await strict.post("/v2.1/servers", server({ imageRef, networks: undefined }), { "x-auth-token": BOB }),
          imageRef,
        );
      const nothing = randomUUID();
      expect(await boot(id)).toBe(await boot(nothing));
      expect(await boot(id)).toMatch(/^400 .*Image ID could not be found/);
    } finally {
      await strict.close();
    }
  });

  it("is removed from the hints same_host and different_host, which keep the caller's own servers", async () => {
    const own = await bootOf(BOB);
    const hinted = async (who: string, hints: object) => {
      const { server: created } = await made(
        post("/v2.1/servers", who, { ...server(), "os:scheduler_hints": hints }),
        202,
      );
      const [record] = await rig.store.requests([created.id]);
      return record!.spec.hints;
    };
    const hints = (id: string) => ({ same_host: [own, id], different_host: id, colour: "red" });
    const ofAlice = await hinted(BOB, hints(things.server));
    expect(JSON.stringify(ofAlice)).not.toContain(things.server);
    expect(ofAlice).toEqual(await hinted(BOB, hints(randomUUID())));
    expect(ofAlice[0]?.values).toContain(own);
    expect((await hinted(ADMIN, hints(things.server)))[1]?.values).toEqual([things.server]);
  });
});

describe("an action for admins", () => {
  it("is refused to members by its policy in every state of the server, before the state is checked", async () => {
    const building = await bootOf(BOB);
    const active = await activeOf(BOB, 2);
    const failed = await bootOf(BOB);
    await rig.store.failRequests([{ serverUuid: failed, cell: null, fault: "No valid host was found." }]);
    for (const [action, body] of Object.entries(ACTION_BODIES)) {
      if (action === "forceDelete") continue;
      for (const id of [building, failed, active, randomUUID()]) {
        const answer = await act(id, BOB, action, body);
        if (FOR_ADMINS.includes(action)) expect(answer.statusCode, `${action} ${answer.body}`).toBe(403);
        else expect(answer.statusCode, `${action} ${answer.body}`).not.toBe(403);
      }
    }
  });

  it("includes the choice of a host for an unshelve", async () => {
    for (const id of [await bootOf(BOB), randomUUID()])
      expect((await post(`/v2.1/servers/${id}/action`, BOB, { unshelve: { host: "host-0" } })).statusCode).toBe(403);
  });
});

describe("the owner of a server that failed", () => {
  const faultOf = async (id: string, who: string) =>
    (await made(call("GET", `/v2.1/servers/${id}`, who), 200)).server.fault;

  it("sees that no valid host was found, and an admin sees why", async () => {
    const id = await bootOf(BOB);
    const why =
      "No valid host was found. Of 3 hosts: 2 no room for VCPU; no answer from cell north. See: berth explain x";
    await rig.store.failRequests([{ serverUuid: id, cell: null, fault: why }]);
    expect((await faultOf(id, BOB)).message).toBe("No valid host was found. There are not enough hosts available.");
    expect(await faultOf(id, BOB)).not.toHaveProperty("details");
    expect(await faultOf(id, ADMIN)).toMatchObject({ message: why, details: why });
  });

  it("sees no name of a tried host in the fault, in lists or in actions", async () => {
    const id = await bootOf(BOB);
    const task = await rig.dispatch(id, "north", [0, 1]);
    const taken = await rig.hop("north", task, 1, "disk is full");
    const reason = `No valid host: ${hostName(0)}: disk is full; ${hostName(1)}: no kernel`;
    await rig.cell("north").store.commitError([{ ...taken, selection: 1, attemptReason: "no kernel", reason }]);
    expect((await faultOf(id, BOB)).message).toMatch(/^No valid host was found\. /);
    const [record] = await rig.store.requests([id]);
    const paths = ["/v2.1/servers/detail", `/v2.1/servers/${id}`, `/v2.1/servers/${id}/os-instance-actions`];
    const one = `/v2.1/servers/${id}/os-instance-actions/${record!.spec.requestId}`;
    for (const path of [...paths, one]) {
      const { body } = await call("GET", path, BOB);
      expect(body, path).not.toMatch(/host-\d|disk is full|no kernel/);
    }
    const { instanceAction } = await made(call("GET", one, BOB), 200);
    expect(instanceAction.events.length).toBeGreaterThan(0);
    for (const event of instanceAction.events) {
      for (const field of ["details", "traceback", "host"]) expect(event).not.toHaveProperty(field);
    }
    const forAdmin = (await made(call("GET", one, ADMIN), 200)).instanceAction.events;
    expect(forAdmin[0]).toMatchObject({ details: "no kernel", host: hostName(1) });
  });

  it("sees the faults of the request itself", async () => {
    const id = await bootOf(BOB);
    const why = "hw:cpu_policy of the flavor is neither shared nor dedicated nor mixed.";
    await rig.store.failRequests([{ serverUuid: id, cell: null, fault: why }]);
    expect((await faultOf(id, BOB)).message).toBe(why);
  });
});
