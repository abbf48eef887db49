import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { withServiceLogin } from "../../test/rigs/with-service-login.ts";
import { CINDER } from "./cinder-client.ts";
import { seesAllProjects } from "./sees-all-projects.ts";

test("a login that may not read Cinder's services does not see all projects, and any other refusal is an error", async () => {
  let status = 200;
  const asked: (string | undefined)[] = [];
  const cinder = createServer((request, response) => {
    asked.push(request.url);
    response.statusCode = status;
    response.end(JSON.stringify(status === 200 ? { services: [] } : { error: { message: "no" } }));
  });
  await new Promise<void>((resolve) => cinder.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(cinder.address() as AddressInfo).port}/v3`;
  const client = withServiceLogin({ ...CINDER, url, timeoutMs: 5_000, triesMax: 1 });
  try {
    expect(await seesAllProjects(client)).toBe(true);
    status = 403;
    expect(await seesAllProjects(client)).toBe(false);
    for (status of [404, 500]) await expect(seesAllProjects(client)).rejects.toThrow("Cinder");
    expect(new Set(asked)).toEqual(new Set(["/v3/os-services?binary=cinder-scheduler"]));
  } finally {
    await client.close();
    cinder.closeAllConnections();
    cinder.close();
  }
});
