import { once } from "node:events";
import { describe, expect, test } from "vitest";
import { eventually } from "../../test/rigs/eventually.ts";
import { RfbClient } from "../../test/rigs/rfb-client.ts";
import { FakeDisplay } from "./fake-display.ts";

describe("a display of the fake driver", () => {
  test("shows a picture at once, and another one after a key was pressed", async () => {
    const client = new RfbClient(new FakeDisplay("a guest"));
    await client.open();
    const first = await client.frame();
    expect(first).toMatchObject({ title: "a guest", width: 32, height: 24 });
    expect([...first.pixels.subarray(0, 8)]).toEqual([0x80, 0, 0, 0, 0x80, 0, 8, 0]);
    const changed = client.frame({ afterChange: true });
    client.press(0x61);
    expect([...(await changed).pixels.subarray(0, 8)]).toEqual([0x7f, 0xff, 0xff, 0, 0x7f, 0xff, 0xf7, 0]);
    client.close();
  });

  test("has the colours in the bytes that the client asks for, as noVNC does", async () => {
    const display = new FakeDisplay("x");
    const said: Buffer[] = [];
    display.on("data", (chunk: Buffer) => said.push(chunk));
    const format = [32, 24, 0, 1, 0, 255, 0, 255, 0, 255, 0, 8, 16, 0, 0, 0];
    const update = [3, 0, 0, 0, 0, 0, 0, 32, 0, 24];
    display.write(Buffer.from([...Buffer.from("RFB 003.008\n"), 1, 0, 0, 0, 0, 0, ...format, ...update]));
    const whole = () => Buffer.concat(said);
    await eventually("the picture", () => whole().length === 12 + 2 + 4 + 25 + 16 + 32 * 24 * 4);
    expect([
      ...whole()
        .subarray(-32 * 24 * 4)
        .subarray(0, 8),
    ]).toEqual([0, 0, 0x80, 0, 8, 0, 0x80, 0]);
    display.destroy();
  });

  test("understands messages that arrive byte by byte", async () => {
    const display = new FakeDisplay("x");
    const clientSays = [
      ...[..."RFB 003.008\n"].map((letter) => letter.charCodeAt(0)),
      ...[1, 0],
      ...[2, 0, 0, 1, 0, 0, 0, 0],
      ...[6, 0, 0, 0, 0, 0, 0, 2, 65, 66],
      ...[5, 0, 0, 1, 0, 1],
      ...[3, 0, 0, 0, 0, 0, 0, 32, 0, 24],
    ];
    let said = 0;
    display.on("data", (chunk: Buffer) => {
      said += chunk.length;
    });
    for (const byte of clientSays) display.write(Buffer.from([byte]));
    await eventually("the picture", () => said === 12 + 2 + 4 + 25 + 16 + 32 * 24 * 4);
    display.destroy();
  });

  test.each([
    ["another version", Buffer.from("RFB 003.003\n"), /3\.8/],
    ["a security type that was not offered", Buffer.from("RFB 003.008\n\x02"), /security type/],
    ["a message of an unknown type", Buffer.from("RFB 003.008\n\x01\x00\x09"), /unknown type 9/],
    ["too long a text", Buffer.from("RFB 003.008\n\x01\x00\x06\0\0\0\x7f\0\0\0", "latin1"), /pastes more/],
    ["another format of pixels", Buffer.from(`RFB 003.008\n\x01\x00\x00\0\0\0${"\x08".repeat(16)}`), /another format/],
  ])("disconnects a client that sends %s", async (_, bytes, message) => {
    const display = new FakeDisplay("x").resume();
    const failed = once(display, "error");
    display.write(bytes);
    expect((await failed)[0].message).toMatch(message);
  });
});
