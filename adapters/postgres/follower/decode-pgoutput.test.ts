import { expect, test } from "vitest";
import { createPgoutputDecoder, type StreamEvent } from "./decode-pgoutput.ts";

const RELATION = 7;

const text = (value: string) => Buffer.from(`${value}\0`);
const int32 = (value: number) => Buffer.from(Uint32Array.of(value).buffer).swap32();
const int16 = (value: number) => Buffer.from(Uint16Array.of(value).buffer).swap16();

/** Describes a table, as pgoutput does before its first row. */
function relationOf(table: string, columns: readonly string[]): Buffer {
  const described = columns.flatMap((name) => [Buffer.of(0), text(name), int32(25), int32(0xffffffff)]);
  return Buffer.concat([
    ...[Buffer.from("R"), int32(RELATION), text("public"), text(table), Buffer.from("d"), int16(columns.length)],
    ...described,
  ]);
}

function insertOf(values: readonly Buffer[]): Buffer {
  const tuple = values.flatMap((value) => [Buffer.from("b"), int32(value.length), value]);
  return Buffer.concat([Buffer.from("I"), int32(RELATION), Buffer.from("N"), int16(values.length), ...tuple]);
}

function decodedServer(spec: Buffer): { readonly payload: Buffer; readonly event: StreamEvent } {
  const decode = createPgoutputDecoder({ servers: true });
  decode(relationOf("servers", ["uuid", "status", "task_state", "host", "spec"]));
  const texts = ["ACTIVE", "spawning", "host-1"].map((value) => Buffer.from(value));
  const payload = insertOf([Buffer.alloc(16, 0xab), ...texts, spec]);
  return { payload, event: decode(payload) };
}

test("a row that waits for its commit keeps its spec, although the driver fills its buffer with the next messages meanwhile", () => {
  const { payload, event } = decodedServer(Buffer.from([1, 2, 3]));
  payload.fill(0xff);
  if (event.kind !== "rows" || event.rows[0]?.table !== "server-put") throw new Error("no row of a server");
  const { spec, ...row } = event.rows[0];
  const uuid = "abababab-abab-abab-abab-abababababab";
  expect(row).toEqual({ table: "server-put", uuid, status: "ACTIVE", taskState: "spawning", host: "host-1" });
  expect([...(spec ?? [])]).toEqual([1, 2, 3]);
});
