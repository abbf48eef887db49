import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ConsoleAnswer, ConsoleQuestion } from "../../../proto/gen/berth/cell.ts";
import { REMOVED_ROUTES } from "../../../services/api/compute/removed/removed-routes.ts";
import { answerInterfaces } from "../../rigs/answer-interfaces.ts";
import { ApiRig } from "./api-rig.ts";

const OWNER = { "x-auth-token": "ann:p1" };
const ADMIN = { "x-auth-token": "admin:ops" };
const GONE = {
  computeFault: { code: 410, message: "This resource is no longer available. No forwarding address is given." },
};

let rig: ApiRig;
let active: string;
let building: string;
let asked: readonly ConsoleQuestion[];
let answer: ConsoleAnswer["answer"];
beforeAll(async () => {
  rig = await ApiRig.start({ auth: "noauth2" });
  const boot = async () =>
    (await rig.post("/v2.1/servers", { server: { name: "web", flavorRef: "1" } }, OWNER)).json().server.id;
  [active, building] = [await boot(), await boot()];
  const task = await rig.dispatch(active, "north", [0]);
  await rig.cell("north").store.commitActive([{ ...(await rig.take("north", task)), selection: 0 }]);
  asked = await answerInterfaces(rig.cell("north").bus, "north", () => answer);
});
afterAll(() => rig.close());

const act = (id: string, body: unknown, headers: Record<string, string> = OWNER) =>
  rig.post(`/v2.1/servers/${id}/action`, body, headers);
/** Changes the password of the active server, whose host gives this answer. */
const change = (given: ConsoleAnswer["answer"]) => {
  answer = given;
  return act(active, { changePassword: { adminPass: "secret" } });
};
const conflictOf = async (id: string, body: unknown) => (await act(id, body)).json().conflictingRequest.message;

describe("an action that no server can take", () => {
  it("refuses to restore a server, since none is deleted softly", async () => {
    expect(await conflictOf(active, { restore: null })).toBe(
      `Cannot 'restore' instance ${active} while it is in vm_state active`,
    );
    expect((await act(active, { restore: {} }, { "x-auth-token": "eve:p2" })).statusCode).toBe(404);
  });
});

describe("changePassword", () => {
  it("asks the host and then answers, and records the action without the password", async () => {
    const answered = await change({ $case: "passwordChanged", value: true });
    expect([answered.statusCode, answered.body]).toEqual([202, ""]);
    expect(asked.map(({ host, serverUuid, password }) => ({ host, serverUuid, password }))).toEqual([
      { host: "host-0", serverUuid: active, password: "secret" },
    ]);
    const actions = await rig.get(`/v2.1/servers/${active}/os-instance-actions`, OWNER);
    expect(actions.json().instanceActions.map(({ action }: { readonly action: string }) => action)).toContain(
      "changePassword",
    );
    expect(actions.body).not.toContain("secret");
  });

  it("answers 501 if the host's driver cannot change passwords, or its conductor is of an older version", async () => {
    for (const answer of [
      { $case: "unavailable", value: true },
      { $case: "output", value: Buffer.from("login:") },
    ] as const)
      expect((await change(answer)).json()).toEqual({
        notImplemented: { code: 501, message: "Unable to set password on instance" },
      });
  });

  it("answers 409 with the host's reason, and 503 if the host is silent", async () => {
    const refused = (reason: string) => `Failed to set admin password on ${active} because ${reason}`;
    const stopped = `instance ${active} is not running`;
    const messageAfter = async (answer: ConsoleAnswer["answer"]) => {
      const { statusCode, json } = await change(answer);
      return [statusCode, Object.values<{ readonly message: string }>(json())[0]?.message];
    };
    expect(await messageAfter({ $case: "passwordRefused", value: stopped })).toEqual([409, refused(stopped)]);
    expect(await messageAfter({ $case: "absent", value: true })).toEqual([409, refused(stopped)]);
    expect(await messageAfter({ $case: "failed", value: "no answer" })).toEqual([
      503,
      expect.stringContaining("change it again"),
    ]);
  });

  it("is refused for a server in another state, and for a malformed value, without repeating the password", async () => {
    const body = { changePassword: { adminPass: "secret" } };
    expect(await conflictOf(building, body)).toMatch(/^Cannot 'changePassword' instance/);
    for (const wrong of [{}, { adminPass: 5 }, { adminPass: "secret", more: 1 }]) {
      const refused = await act(active, { changePassword: wrong });
      expect(refused.statusCode).toBe(400);
      expect(refused.body).not.toContain("secret");
    }
  });
});

describe("injectNetworkInfo", () => {
  it("is accepted from admins, and refused to others by its policy", async () => {
    expect((await act(active, { injectNetworkInfo: null }, ADMIN)).statusCode).toBe(202);
    expect((await act(crypto.randomUUID(), { injectNetworkInfo: null }, ADMIN)).statusCode).toBe(404);
    expect((await act(active, { injectNetworkInfo: null })).json().forbidden.message).toBe(
      "Policy doesn't allow os_compute_api:os-admin-actions:inject_network_info to be performed.",
    );
  });
});

describe("a feature that Nova has removed", () => {
  it("is gone for every caller and at every microversion", async () => {
    for (const [url, ...methods] of REMOVED_ROUTES) {
      for (const method of methods) {
        for (const version of ["2.1", "2.96"]) {
          const headers = { ...OWNER, "openstack-api-version": `compute ${version}` };
          const answer = await rig.call({
            method: method as "GET",
            url: `/v2.1${url.replaceAll(/:\w+/g, "1")}`,
            headers,
          });
          expect([answer.statusCode, answer.json()], `${method} ${url}`).toEqual([410, GONE]);
        }
      }
    }
    expect((await rig.get("/v2.1/os-cells")).statusCode).toBe(401);
  });

  it("may be an action of servers", async () => {
    for (const action of ["resetNetwork", "disassociate_host"])
      expect((await act(active, { [action]: null })).json()).toEqual(GONE);
    const rdp = { "os-getRDPConsole": { type: "rdp-html5" } };
    const refused = await rig.post(`/v2.1/servers/${active}/action`, rdp, {
      ...OWNER,
      "openstack-api-version": "compute 2.5",
    });
    expect([refused.statusCode, refused.json().badRequest.message]).toEqual([
      400,
      "Unavailable console type rdp-html5.",
    ]);
    const later = { ...OWNER, "openstack-api-version": "compute 2.6" };
    expect((await act(active, rdp, later)).json()).toMatchObject({ itemNotFound: { code: 404 } });
    expect((await act(active, { fly: null })).json().badRequest.message).toBe("There is no such action: fly");
  });
});
