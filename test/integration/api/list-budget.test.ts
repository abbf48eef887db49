import { randomUUID } from "node:crypto";
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MemoryApiStore } from "../../../adapters/memory/api/memory-api-store.ts";
import { systemClock } from "../../../runtime/clock.ts";
import { DEFAULT_API_SETTINGS } from "../../../services/api/settings.ts";
import { eventually } from "../../rigs/eventually.ts";
import { ApiRig } from "./api-rig.ts";

const SERVERS = 400;
const METADATA_BYTES = 60_000;
const WAITING_MAX = 3;

let rig: ApiRig;
/** The number of list reads begun so far, by project. */
const reads = new Map<string | null, number>();
beforeAll(async () => {
  const store = new MemoryApiStore({ clock: systemClock });
  const counting = new Proxy(store, {
    get(target, name) {
      const member = Reflect.get(target, name);
      if (typeof member !== "function") return member;
      return (...args: unknown[]) => {
        const [query] = args as [{ readonly projectId: string | null }];
        if (name === "listRequests") reads.set(query.projectId, (reads.get(query.projectId) ?? 0) + 1);
        return member.apply(target, args);
      };
    },
  });
  const lists = { ...DEFAULT_API_SETTINGS.lists, projectWaitingMax: WAITING_MAX };
  rig = await ApiRig.start({ lists }, counting);
  for (const project of ["a", "b"]) {
    const [record] = await rig.store.requests([await rig.boot({}, { "x-project-id": project })]);
    const { spec } = record!;
    const metadata = Object.fromEntries(
      Array.from({ length: Math.ceil(METADATA_BYTES / 255) }, (_, at) => [`key-${at}`, "x".repeat(255)]),
    );
    const others = project === "a" ? SERVERS : 3;
    await rig.store.accept(Array.from({ length: others }, () => ({ ...spec, uuid: randomUUID(), metadata })));
  }
});
afterAll(() => rig?.close());

/** A client that requests a list and reads only the beginning of the answer. */
function askOnly(project: string): { readonly socket: Socket; readonly begun: () => string } {
  const socket = connect(rig.api.address.port, "127.0.0.1");
  let begun = "";
  socket.on("error", () => {});
  socket.once("data", (chunk) => {
    begun = String(chunk);
    socket.pause();
  });
  socket.write(`GET /v2.1/servers/detail HTTP/1.1\r\nhost: x\r\nx-project-id: ${project}\r\n\r\n`);
  return { socket, begun: () => begun };
}

describe("list answers in progress", () => {
  it("are bounded until they are sent: a project's lists wait for each other, those of other projects do not, and too many are refused", async () => {
    const first = askOnly("a");
    await eventually("the first list to be read", () => reads.get("a") === 1);
    const others = Array.from({ length: WAITING_MAX + 1 }, () => askOnly("a"));
    const beginnings = () => others.map(({ begun }) => begun()).filter((begun) => begun !== "");
    try {
      await eventually("one more than may wait to be refused", () => beginnings().length > 0);
      expect(beginnings()).toEqual([expect.stringMatching(/^HTTP\/1\.1 503 .*retry-after: 1/s)]);
      const other = await rig.get("/v2.1/servers/detail", { "x-project-id": "b" });
      expect(other.json().servers).toHaveLength(4);
      // Only the first request has been read so far.
      expect(reads.get("a")).toBe(1);
      first.socket.destroy();
      await eventually("the next to be read for", () => reads.get("a") === 2);
      for (const { socket } of others) socket.destroy();
      const later = async () => (await rig.get("/v2.1/servers?limit=5", { "x-project-id": "a" })).statusCode === 200;
      await eventually("those that went away to hold nothing", later);
    } finally {
      for (const { socket } of [first, ...others]) socket.destroy();
    }
  });

  it("are all sent to clients that read them", async () => {
    const answers = await Promise.all(
      Array.from({ length: WAITING_MAX + 1 }, () => rig.get("/v2.1/servers/detail", { "x-project-id": "a" })),
    );
    expect(answers.map(({ statusCode }) => statusCode)).toEqual(Array.from({ length: WAITING_MAX + 1 }, () => 200));
    expect(answers.every((answer) => answer.json().servers.length === SERVERS + 1)).toBe(true);
  });
});
