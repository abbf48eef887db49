import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { callOperatorsApi } from "./operators-client.ts";

test("a refused token is answered with how to give one", async () => {
  const api = createServer((_, answer) => {
    answer.writeHead(401, { "content-type": "application/json" });
    answer.end(JSON.stringify({ unauthorized: { code: 401, message: "Requires authentication." } }));
  }).listen(0, "127.0.0.1");
  await once(api, "listening");
  try {
    const access = { api: `http://127.0.0.1:${(api.address() as AddressInfo).port}` };
    await expect(callOperatorsApi({ ...access, token: null }, "GET", "/hosts")).rejects.toThrow(
      /^Requires authentication\. This command was given no token\. Give an admin's with --token or BERTH_TOKEN/,
    );
    await expect(callOperatorsApi({ ...access, token: "old" }, "GET", "/hosts")).rejects.toThrow(/has expired/);
  } finally {
    api.closeAllConnections();
    api.close();
    await once(api, "close");
  }
});
