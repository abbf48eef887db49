import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createLogger } from "../../../runtime/logger.ts";
import { readSettings, SettingsError } from "../../../runtime/settings.ts";
import { openAccess } from "./open-access.ts";
import { placementDeclaration } from "./settings.ts";

const logger = createLogger({ name: "test", level: "silent" });

function options(env: Readonly<Record<string, string>>) {
  const read = readSettings(placementDeclaration, { argv: [], env });
  if (read.kind === "help") throw new Error("not asked for help");
  return read.settings;
}

test("authenticates callers by Keystone when its address is set", async () => {
  const env = {
    BERTH_AUTH: "keystone",
    BERTH_KEYSTONE_URL: "http://127.0.0.1:1/v3",
    BERTH_KEYSTONE_PASSWORD: "secret",
  };
  const access = await openAccess(options(env), logger);
  await expect(access.authenticate({ headers: {} } as never)).rejects.toMatchObject({ status: 401 });
  await access.close();
});

test.each([
  [{}, "BERTH_KEYSTONE_URL (--keystone-url) is missing"],
  [{ BERTH_KEYSTONE_URL: "http://127.0.0.1:1" }, "BERTH_KEYSTONE_PASSWORD (--keystone-password) is missing"],
])("refuses to start when Keystone's settings do not suffice: %j", async (env, message) => {
  const opening = openAccess(options({ BERTH_AUTH: "keystone", ...env }), logger);
  await expect(opening).rejects.toThrow(SettingsError);
  await expect(opening).rejects.toThrow(message);
});

test("refuses to start with a broken policy file", async () => {
  const dir = await mkdtemp(join(tmpdir(), "berth-access-"));
  const path = join(dir, "policy.yaml");
  await writeFile(path, "a: [");
  await expect(openAccess(options({ BERTH_POLICY_FILE: path }), logger)).rejects.toThrow(SettingsError);
  await rm(dir, { recursive: true });
});

test("shares with browsers only what the settings allow", async () => {
  const closed = await openAccess(options({}), logger);
  expect(closed.cors).toBeNull();
  await closed.close();
  const open = await openAccess(
    options({ BERTH_CORS_ALLOWED_ORIGIN: "http://a.example.org,http://b.example.org", BERTH_CORS_MAX_AGE: "60" }),
    logger,
  );
  const request = {
    method: "OPTIONS",
    headers: { origin: "http://b.example.org", "access-control-request-method": "PUT" },
    requestId: "r",
  };
  const answer = await open.cors?.around(request, async () => ({ status: 500, headers: {}, body: "" }));
  expect(answer?.headers).toMatchObject({
    "access-control-allow-origin": "http://b.example.org",
    "access-control-max-age": "60",
  });
  await open.close();
});
