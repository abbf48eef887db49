import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { requireDashboard } from "./require-dashboard.ts";

test("an api without a dashboard is refused with the setting that serves it, and one without the page for what needs the page", async () => {
  let [status, body] = [404, ""];
  const api = createServer((_, answer) => {
    answer.writeHead(status).end(body);
  }).listen(0, "127.0.0.1");
  await once(api, "listening");
  try {
    const url = `http://127.0.0.1:${(api.address() as AddressInfo).port}/`;
    for (const needed of ["page", "data"] as const)
      await expect(requireDashboard(url, needed)).rejects.toThrow(
        /serves no dashboard: start it with BERTH_DASHBOARD=true/,
      );
    // The page has not been built there, and the data is served.
    [status, body] = [503, JSON.stringify({ serviceUnavailable: { code: 503, message: "Run `npm run dashboard`." } })];
    await expect(requireDashboard(url, "page")).rejects.toThrow(
      /answers 503 to GET \/dashboard: Run `npm run dashboard`\.$/,
    );
    await expect(requireDashboard(url, "data")).resolves.toBeUndefined();
    [status, body] = [502, "<html>"];
    for (const needed of ["page", "data"] as const)
      await expect(requireDashboard(url, needed)).rejects.toThrow(
        /answers 502 to GET \/dashboard: it does not say why$/,
      );
    [status, body] = [200, "<html>"];
    for (const needed of ["page", "data"] as const)
      await expect(requireDashboard(url, needed)).resolves.toBeUndefined();
  } finally {
    api.closeAllConnections();
    api.close();
    await once(api, "close");
  }
});
