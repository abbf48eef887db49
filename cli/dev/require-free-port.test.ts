import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { expect, test } from "vitest";
import { requireFreePort } from "./require-free-port.ts";

test("a port that another program has is refused with what to do, and a free one is not", async () => {
  const other = createServer().listen(0, "127.0.0.1");
  await once(other, "listening");
  const { port } = other.address() as AddressInfo;
  try {
    await expect(requireFreePort(port)).rejects.toThrow(
      new RegExp(`^BERTH_PORT \\(--port\\) ${port}: another program listens there already.*--port \\(0`),
    );
  } finally {
    other.close();
    await once(other, "close");
  }
  await expect(requireFreePort(0)).resolves.toBeUndefined();
});
