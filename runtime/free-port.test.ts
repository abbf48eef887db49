import { once } from "node:events";
import { createServer } from "node:net";
import { expect, test } from "vitest";
import { freePort } from "./free-port.ts";

test("a port that another process took between two checks is refused, and any other free port is found", async () => {
  const port = await freePort();
  expect(await freePort(port)).toBe(port);
  const holder = createServer().listen(port, "127.0.0.1");
  await once(holder, "listening");
  try {
    await expect(freePort(port)).rejects.toMatchObject({ code: "EADDRINUSE" });
    expect(await freePort()).not.toBe(port);
  } finally {
    holder.close();
    await once(holder, "close");
  }
});
