import { afterEach, beforeEach, expect, test } from "vitest";
import { readSettings } from "../../runtime/settings.ts";
import { type FakeKeystone, startFakeKeystone } from "../../test/rigs/fake-keystone.ts";
import { loginOptions } from "./login-options.ts";
import { neighbourOptions } from "./neighbour-options.ts";
import { openNeighbours } from "./open-neighbours.ts";

let keystone: FakeKeystone;
beforeEach(async () => {
  keystone = await startFakeKeystone();
});
afterEach(() => keystone.close());

const ID = "BERTH_KEYSTONE_APPLICATION_CREDENTIAL_ID";
const SECRET = "BERTH_KEYSTONE_APPLICATION_CREDENTIAL_SECRET";

function options(env: Readonly<Record<string, string>>) {
  const declaration = { command: "berth try", about: "", settings: { ...loginOptions, ...neighbourOptions } };
  const read = readSettings(declaration, { argv: [], env });
  if (read.kind !== "settings") throw new Error("there are no settings");
  return read.settings;
}

test("neighbours are called with the credentials that the settings name", async () => {
  const service = { service: "Glance", types: ["image"], url: null };
  for (const credentials of [{ BERTH_KEYSTONE_PASSWORD: "secret" }, { [ID]: "credential", [SECRET]: "secret" }]) {
    const neighbours = openNeighbours(options({ BERTH_KEYSTONE_URL: keystone.url, ...credentials }));
    const call = { method: "GET", path: "/", callerToken: null, requestId: null, expect: [200] } as const;
    // The login succeeds, and the catalogue that it gets is empty.
    await expect(neighbours.client(service).call(call)).rejects.toMatchObject({ code: "bad-answer" });
    await neighbours.close();
  }
  expect(keystone.asked).toEqual(["login", "login"]);
});

test.each([
  [{}, [/KEYSTONE_URL/, /KEYSTONE_PASSWORD/]],
  [{ [ID]: "credential" }, [/KEYSTONE_URL/, /CREDENTIAL_SECRET is missing/]],
  [{ [SECRET]: "secret" }, [/KEYSTONE_URL/, /CREDENTIAL_ID .* is missing/]],
])("%j are not enough", (env, faults) => {
  const matching = faults.map((fault) => expect.stringMatching(fault));
  expect(() => openNeighbours(options(env))).toThrow(expect.objectContaining({ faults: matching }));
});
