import { randomUUID } from "node:crypto";
import { beforeEach, describe, expect, test } from "vitest";
import { MemoryBlockStorage } from "../../adapters/memory/memory-block-storage.ts";
import { OWN_NAME } from "../../core/stores/networking.ts";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { serverId } from "../../test/contract/cell-fixtures.ts";
import { volumeOf } from "../../test/rigs/begin-operation.ts";
import { VolumeConnections } from "./volume-connections.ts";

const SERVER = serverId(1);
const tenure = { taskId: "t", serverUuid: SERVER, epoch: 1 };

let cinder: MemoryBlockStorage;
let clock: ManualClock;
let connections: VolumeConnections;
let volumeId: string;
let isHeld: boolean;
beforeEach(() => {
  isHeld = true;
  cinder = new MemoryBlockStorage({ newId: randomUUID });
  clock = new ManualClock();
  connections = new VolumeConnections(
    { storage: cinder, store: { holdsTask: async () => isHeld }, clock },
    { volumeConnectTimeoutMs: 600_000 },
  );
  volumeId = cinder.putVolume({ projectId: "one" }).id;
});

/** How the host reaches the volume, once it is connected. */
async function connect(host: string, isUrgent = false): Promise<unknown> {
  const need = { host, tenure, isUrgent, isWanted: () => true };
  const outcome = await connections.connect(SERVER, [{ ...volumeOf(1), volumeId, inCinder: true }], need);
  if (outcome?.kind !== "connected") throw new Error(JSON.stringify(outcome));
  return JSON.parse(outcome.connections.get(volumeId) ?? "");
}

test("a raw volume whose content looks like qcow2 is given to its first host, to that host again, and to another one as raw", async () => {
  cinder.guessedFormats.set(volumeId, "qcow2");
  for (const host of ["host-0", "host-0", "host-1"])
    expect(await connect(host)).toMatchObject({ name: `volume-${volumeId}`, format: "raw" });
  expect(await cinder.attachments({ volumeId })).toHaveLength(2);
});

describe("a volume that Cinder fills with an image, and that is kept for its server", () => {
  beforeEach(async () => {
    cinder.holdsReimages = true;
    await cinder.reserve({ volumeId, serverUuid: SERVER, connector: null }, OWN_NAME);
    await cinder.reimage({ volumeId, imageId: randomUUID() });
  });

  test("is not connected before it is filled, and then it is", async () => {
    const connecting = connect("host-0");
    for (let second = 0; second < 300; second += 1) {
      for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
      clock.advance(1_000);
    }
    expect([cinder.all()[0]?.status, cinder.fills.disturbances]).toEqual(["downloading", []]);
    cinder.fills.finish(true);
    for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
    clock.advance(1_000);
    expect(await connecting).toMatchObject({ name: `volume-${volumeId}` });
  });

  test("forbids a start for which nobody waits, as does one that Cinder could not fill", async () => {
    const forbidden = /"reason":"Volume .* is still downloading in Cinder.*"forbidsStart":true/;
    await expect(connect("host-0", true)).rejects.toThrow(forbidden);
    expect(cinder.fills.disturbances).toEqual([]);
    cinder.fills.finish(false);
    const broken = /"reason":"The status of volume .* is error.*--state reserved.*"forbidsStart":true/;
    await expect(connect("host-0", true)).rejects.toThrow(broken);
    await expect(connect("host-0")).rejects.toThrow(broken);
    cinder.putVolume({ ...cinder.all()[0]!, status: "reserved" });
    expect(await connect("host-0", true)).toMatchObject({ name: `volume-${volumeId}` });
  });
});

test("a volume that is in error in Cinder while its server has it on this host is given to the guest again", async () => {
  await connect("host-0");
  cinder.putVolume({ ...cinder.all()[0]!, status: "error" });
  expect(await connect("host-0", true)).toMatchObject({ name: `volume-${volumeId}` });
});

test("a volume that is asked for twice at once, because its host has connected again, gets one attachment", async () => {
  const [one, other] = await Promise.all([connect("host-0"), connect("host-0")]);
  expect([one, await cinder.attachments({ volumeId })]).toEqual([other, [expect.anything()]]);
});

describe("a volume that was connected to another host, for a server that has it on a third one", () => {
  beforeEach(async () => {
    await connect("host-0");
    await cinder.reserve({ volumeId, serverUuid: SERVER, connector: { host: "host-5", initiator: "i" } }, OWN_NAME);
  });

  test("stays connected there when the conductor loses its task meanwhile, since a guest may have it by then", async () => {
    const complete = cinder.complete.bind(cinder);
    cinder.complete = async (id) => {
      isHeld = false;
      return complete(id);
    };
    await expect(connect("host-9")).rejects.toThrow("unwanted");
    expect(await cinder.attachments({ volumeId })).toHaveLength(2);
  });

  test("stays connected there when Cinder does not show where it is, and the third host gets a connection of its own", async () => {
    const shown = cinder.volume.bind(cinder);
    let looks = 0;
    cinder.volume = async (id, by) => {
      const volume = await shown(id, by);
      looks += 1;
      if (looks !== 2 || volume === null) return volume;
      return { ...volume, attachedTo: volume.attachedTo.filter(({ host }) => host !== "host-5") };
    };
    const connecting = connect("host-9");
    for (let turn = 0; turn < 50; turn += 1) await Promise.resolve();
    expect([looks, await cinder.attachments({ volumeId })]).toEqual([2, [expect.anything(), expect.anything()]]);
    clock.advance(1_000);
    expect(await connecting).toMatchObject({ name: `volume-${volumeId}` });
    const [{ attachedTo } = { attachedTo: [] }] = cinder.all();
    expect(attachedTo.map(({ host }) => host)).toEqual(["host-0", "host-5", "host-9"]);
  });
});

describe("a volume that its driver takes longer to connect than Cinder waits", () => {
  /** Each try to connect is left without an answer for as long as Cinder waits for its driver. */
  function makeSlow(): { readonly asked: () => number } {
    let asked = 0;
    cinder.fate = (method) => {
      if (method !== "connect" && method !== "reserve") return "answered";
      asked += 1;
      clock.advance(75_000);
      return "slow";
    };
    return { asked: () => asked };
  }

  /** Lets time pass, a second at a time, until the work has ended. */
  async function afterSeconds<Value>(work: Promise<Value>, each: (second: number) => void): Promise<Value> {
    let isOver = false;
    const over = work.finally(() => (isOver = true));
    for (let second = 1; !isOver && second < 2_000; second += 1) {
      for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
      each(second);
      clock.advance(1_000);
    }
    return over;
  }

  test.each([0, 1])("is connected once, with %d other hosts that have it", async (others) => {
    for (let host = 0; host < others; host += 1) await connect(`host-${host}`);
    const slow = makeSlow();
    const connection = await afterSeconds(connect("host-9"), (second) => second === 90 && cinder.finishSlow());
    expect([connection, slow.asked()]).toEqual([expect.objectContaining({ name: `volume-${volumeId}` }), 1]);
    const [{ attachedTo } = { attachedTo: [] }] = cinder.all();
    expect(attachedTo.map(({ host }) => host).at(-1)).toBe("host-9");
    expect(await cinder.attachments({ volumeId })).toHaveLength(others + 1);
  });

  test("is connected once with the attachment that the api has reserved", async () => {
    await cinder.reserve({ volumeId, serverUuid: SERVER, connector: null }, OWN_NAME);
    const slow = makeSlow();
    await afterSeconds(connect("host-9"), (second) => second === 90 && cinder.finishSlow());
    expect([slow.asked(), (await cinder.attachments({ volumeId })).length]).toEqual([1, 1]);
  });

  test("is asked for once more when it has not appeared after minutes, and fails at the deadline", async () => {
    await connect("host-0");
    const slow = makeSlow();
    await expect(afterSeconds(connect("host-9"), () => {})).rejects.toThrow(/Cinder/);
    expect(slow.asked()).toBe(2);
    const [{ attachedTo } = { attachedTo: [] }] = cinder.all();
    expect(attachedTo.map(({ host }) => host)).toEqual(["host-0"]);
  });

  test("is not taken for that of this host when it was connected to another one for a conductor that was fenced", async () => {
    await connect("host-0");
    const slow = makeSlow();
    const late = cinder.reserve.bind(cinder);
    const connection = await afterSeconds(connect("host-9"), (second) => {
      if (second !== 60) return;
      cinder.fate = () => "answered";
      late({ volumeId, serverUuid: SERVER, connector: { host: "host-5", initiator: "i" } }, OWN_NAME).catch(() => {});
    });
    expect([connection, slow.asked()]).toEqual([expect.objectContaining({ name: `volume-${volumeId}` }), 1]);
    const [{ attachedTo } = { attachedTo: [] }] = cinder.all();
    expect(attachedTo.map(({ host }) => host)).toEqual(["host-0", "host-9"]);
  });

  test("is looked for when Cinder answers late that it does not know, and refused when it says so at once", async () => {
    const vague = { kind: "refused", why: "Unable to create attachment for volume.", isVague: true } as const;
    const reserve = cinder.reserve.bind(cinder);
    cinder.reserve = async () => vague;
    await expect(connect("host-9")).rejects.toThrow(/Cinder does not connect volume/);
    cinder.reserve = async (wanted, by) => {
      cinder.reserve = reserve;
      cinder.fate = (method) => (method === "reserve" ? "slow" : "answered");
      await reserve(wanted, by).catch(() => {});
      clock.advance(60_000);
      return vague;
    };
    await afterSeconds(connect("host-9"), (second) => second === 5 && cinder.finishSlow());
    expect(await cinder.attachments({ volumeId })).toHaveLength(1);
  });
});
