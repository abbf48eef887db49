import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { requireDashboard } from "./require-dashboard.ts";

test("an api without a dashboard is refused with the setting that serves it", async () => {
  let status = 404;
  const api = createServer((_, answer) => {
    answer.writeHead(status).end();
  }).listen(0, "127.0.0.1");
  await once(api, "listening");
  try {
    const url = `http://127.0.0.1:${(api.address() as AddressInfo).port}/`;
    await expect(requireDashboard(url)).rejects.toThrow(/serves no dashboard: start it with BERTH_DASHBOARD=true/);
    status = 200;
    await expect(requireDashboard(url)).resolves.toBeUndefined();
  } finally {
    api.closeAllConnections();
    api.close();
    await once(api, "close");
  }
});
