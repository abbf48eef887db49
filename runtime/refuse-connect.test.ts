import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { expect, test } from "vitest";
import { eventually } from "../test/rigs/eventually.ts";
import { refuseConnect } from "./refuse-connect.ts";

test.each([
  ["closes its end as well", false],
  ["keeps its end open for ever", true],
])("leaves no connection behind when a client that was refused %s", async (_, allowHalfOpen) => {
  const server = createServer();
  refuseConnect(server, "{}");
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const socket = connect({ host: "127.0.0.1", port, allowHalfOpen });
  socket.on("error", () => {});
  let answer = "";
  socket.setEncoding("utf8").on("data", (chunk: string) => {
    answer += chunk;
  });
  socket.write("CONNECT example.org:443 HTTP/1.1\r\nhost: example.org:443\r\n\r\nmore that nobody reads");
  try {
    await eventually("the answer", () => answer.endsWith("{}"));
    await eventually(
      "the connection to be gone",
      () => new Promise<boolean>((resolve) => server.getConnections((_error, count) => resolve(count === 0))),
    );
    expect(answer).toMatch(/^HTTP\/1\.1 405 /);
  } finally {
    socket.destroy();
    server.close();
  }
});
