import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../../runtime/clock.ts";
import { withDeadline } from "../../../runtime/deadline.ts";
import { PlacementRig } from "../../placement/placement-rig.ts";
import { ApiRig } from "./api-rig.ts";

let rig: ApiRig;
let placement: PlacementRig;
beforeAll(async () => {
  [rig, placement] = await Promise.all([ApiRig.start(), PlacementRig.start()]);
});
afterAll(() => Promise.all([rig?.close(), placement?.close()]));

const FACES = ["compute", "placement"] as const;
function portOf(face: (typeof FACES)[number]): number {
  return face === "compute" ? rig.api.address.port : Number(new URL(placement.url).port);
}
const PATHS = {
  compute: "POST /v2.1/servers",
  placement: "PUT /allocations/5a2e0d2e-1111-4222-8333-444455556666",
};

/** Sends only these bytes, and reads until the server closes the connection, which must happen within the deadline. */
async function exchange(port: number, bytes: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  let answer = "";
  socket.on("data", (chunk) => {
    answer += chunk;
  });
  // Bytes that the server no longer reads break the connection only after the answer.
  socket.on("error", () => {});
  socket.write(bytes);
  const closed = once(socket, "close");
  socket.on("end", () => socket.destroy());
  try {
    await withDeadline(closed, 20_000, "closing the connection", systemClock);
  } finally {
    socket.destroy();
  }
  return answer;
}

describe.each(FACES)("the %s server", (face) => {
  const head = `${PATHS[face]} HTTP/1.1\r\nhost: x\r\nx-auth-token: admin\r\ncontent-type: application/json\r\n`;

  it("refuses a body whose announced length is too large before any of it arrives, and closes", async () => {
    const answer = await exchange(portOf(face), `${head}content-length: 10000000\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 413 /);
    expect(answer).toMatch(/connection: close/i);
  });

  it("refuses a body that grows too large while it arrives, and closes", async () => {
    const chunk = `10000\r\n${"a".repeat(0x10000)}\r\n`;
    const answer = await exchange(portOf(face), `${head}transfer-encoding: chunked\r\n\r\n${chunk.repeat(17)}`);
    expect(answer).toMatch(/^HTTP\/1\.1 413 /);
  });

  it.each(
    face === "compute" ? ["/v2.1/servers", "/v2.1/nothing", "/v2.1/servers/x", "/"] : ["/resource_providers", "/"],
  )("refuses a '#' behind %s, where the path would end for the router alone", async (path) => {
    const answer = await exchange(
      portOf(face),
      `GET ${path}#/tags?name=%00 HTTP/1.1\r\nhost: x\r\nx-auth-token: admin\r\nconnection: close\r\n\r\n`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toContain("write it as %23");
  });

  it("answers CONNECT with 405 and closes", async () => {
    const answer = await exchange(portOf(face), "CONNECT example.org:443 HTTP/1.1\r\nhost: example.org:443\r\n\r\n");
    expect(answer).toMatch(/^HTTP\/1\.1 405 /);
    expect(JSON.parse(answer.slice(answer.indexOf("\r\n\r\n") + 4))).toBeTypeOf("object");
  });
});
