import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, expect, test } from "vitest";
import { MemoryBlockStorage } from "../../adapters/memory/memory-block-storage.ts";
import type { ServerVolume } from "../../proto/gen/berth/shared.ts";
import type { Driver } from "../../services/compute-agent/driver.ts";
import type { FakeDriver } from "../../services/compute-agent/fake-driver.ts";
import type { FakeScript } from "../../services/compute-agent/fake-script.ts";
import { NO_SHARE } from "../../services/compute-agent/fake-volume-files.ts";
import type { ConductorSettings } from "../../services/conductor/settings.ts";
import { serverId } from "../contract/cell-fixtures.ts";
import { volumeOf } from "../rigs/begin-operation.ts";
import { eventually } from "../rigs/eventually.ts";
import { SmallCell } from "../rigs/small-cell.ts";

const OWN = { callerToken: null, requestId: null };

let cell: SmallCell;
let cinder: MemoryBlockStorage;
let driver: FakeDriver;
let first: Awaited<ReturnType<SmallCell["startConductor"]>>;
let agent: Awaited<ReturnType<SmallCell["startAgent"]>>;
let volumeId: string;
beforeEach(async () => {
  cell = await new SmallCell().open();
  cinder = new MemoryBlockStorage({ newId: randomUUID });
  cell.blockStorage = cinder;
});
afterEach(() => cell.close());

/** Server 1 runs on host-0 with a volume in Cinder. `wrap` stands before the driver. */
async function running({
  fake,
  wrap = (one) => one,
  conductor = {},
}: {
  readonly fake?: FakeScript;
  readonly wrap?: (driver: FakeDriver) => Driver;
  readonly conductor?: Partial<ConductorSettings>;
} = {}): Promise<void> {
  first = await cell.startConductor(1, conductor);
  const before = (one: FakeDriver) => {
    driver = one;
    return wrap(one);
  };
  const share = {
    ...NO_SHARE,
    chainOf: (file: string) => {
      const chain = cinder.snapshotFiles.chainOf(volumeId);
      return chain.includes(file) ? chain.slice(chain.indexOf(file)) : [file];
    },
  };
  const at = { id: "agent-0", hosts: [0], vcpus: 4, conductors: [1, 2] };
  agent = await cell.startAgent({ ...at, before, share, ...(fake && { fake }) });
  await cell.hostsUp(1);
  const { id } = cinder.putVolume({ projectId: "one" });
  volumeId = id;
  const kept = await cinder.reserve({ volumeId, serverUuid: serverId(1), connector: null }, OWN);
  if (kept.kind !== "reserved") throw new Error(kept.kind);
  const volume = { ...volumeOf(1), volumeId, attachmentId: kept.attachment.id, inCinder: true };
  await cell.boot(1, [0], { volumes: [volume] });
  await cell.become(1, "ACTIVE");
}

const present = async (): Promise<ServerVolume> => (await cell.server(1)).spec.volumes[0]!;
const used = () => driver.guests()[0]?.files?.[volumeId];
const statusOf = (id: string) => cinder.snapshotFiles.all.get(id)?.status;
const firstFile = () => `volume-${volumeId}`;

/** Cinder makes a snapshot, for which the cell is asked to let the guest write to a new file. */
async function begin(): Promise<{ readonly id: string; readonly file: string }> {
  const { id } = cinder.putSnapshot(volumeId, { status: "creating" });
  const file = cinder.snapshotFiles.begin(cinder.snapshotFiles.all.get(id)!);
  const snapshot = { snapshotId: id, newFile: file, fileToMerge: "", mergeTarget: "" };
  await cell.operate({ server: 1, kind: "snapshot-volume", volume: { ...(await present()), file }, snapshot });
  return { id, file };
}

/** Cinder deletes a snapshot. Returns the file that it will delete. */
async function beginDeletion(id: string): Promise<string> {
  const wish = cinder.snapshotFiles.beginDeletion(id);
  if (wish === null) throw new Error("Cinder does not ask for anything");
  const { fileToMerge, mergeTarget, deletes } = wish;
  const snapshot = { snapshotId: id, newFile: "", fileToMerge: fileToMerge ?? "", mergeTarget: mergeTarget ?? "" };
  await cell.operate({ server: 1, kind: "merge-volume", volume: await present(), snapshot });
  return deletes;
}

async function made(): Promise<{ readonly id: string; readonly file: string }> {
  const one = await begin();
  await eventually("the snapshot to be made", () => statusOf(one.id) === "available");
  expect(await cell.rest(1)).toMatchObject({ status: "ACTIVE", fault: null });
  return one;
}

/** The server, Cinder and the guest agree about the volume's files. */
async function agree(...files: readonly string[]): Promise<void> {
  expect(await cell.rest(1)).toMatchObject({ status: "ACTIVE" });
  expect(used()).toEqual(files);
  expect(cinder.snapshotFiles.chainOf(volumeId)).toEqual(files);
  const file = (await present()).file;
  expect(file === "" ? firstFile() : file).toBe(files[0]);
}

test("a guest writes to the new file of a snapshot, which Cinder names from then on", async () => {
  await running();
  const { file } = await made();
  await agree(file, firstFile());
  const [attachment] = await cinder.attachments({ volumeId });
  expect((await cinder.attachment(attachment?.id ?? ""))?.connection).toMatchObject({ name: file });
});

test("files are merged when snapshots are deleted, in any order, and Cinder deletes none that the guest uses", async () => {
  await running();
  const [one, two, three] = [await made(), await made(), await made()];
  const deleted: string[] = [];
  cinder.snapshotFiles.onDeleted = (_, file) => {
    expect(used()).not.toContain(file);
    deleted.push(file);
  };
  const deletes = [await beginDeletion(two.id)];
  await eventually("the second one to be gone", () => statusOf(two.id) === undefined);
  await agree(three.file, one.file, firstFile());
  deletes.push(await beginDeletion(three.id));
  await eventually("the third one to be gone", () => statusOf(three.id) === undefined);
  await agree(three.file, firstFile());
  deletes.push(await beginDeletion(one.id));
  await eventually("the first one to be gone", () => statusOf(one.id) === undefined);
  await agree(three.file);
  expect(deleted).toEqual(deletes);
});

test("a snapshot ends in error, and the guest keeps its file, if the host cannot switch", async () => {
  await running({ fake: { replace_failures: 1 } });
  const { id } = await begin();
  await eventually("Cinder to be told", () => statusOf(id) === "error");
  await agree(firstFile());
  expect((await cell.server(1)).fault?.message).toContain("the storage is broken");
});

test("a guest that was switched although its host says that it was not goes back", async () => {
  let isFirst = true;
  const snapshotVolume: Driver["snapshotVolume"] = async (...args) => {
    await driver.snapshotVolume(...args);
    if (isFirst) {
      isFirst = false;
      throw new Error("QEMU did not answer in time");
    }
  };
  await running({ wrap: (one) => proxied(one, { snapshotVolume }) });
  const { id } = await begin();
  await eventually("Cinder to be told", () => statusOf(id) === "error");
  await agree(firstFile());
});

test("a guest goes back to its former file if Cinder has given the snapshot up meanwhile", async () => {
  let switched: () => void = () => {};
  const snapshotVolume: Driver["snapshotVolume"] = async (...args) => {
    await driver.snapshotVolume(...args);
    switched();
  };
  await running({ wrap: (one) => proxied(one, { snapshotVolume }) });
  switched = () => {
    for (const [id, { status }] of cinder.snapshotFiles.all) if (status === "creating") cinder.snapshotFiles.giveUp(id);
  };
  const { id } = await begin();
  await eventually("the operation to end", async () => (await cell.server(1)).taskState === null);
  await agree(firstFile());
  expect([statusOf(id), (await cell.server(1)).fault?.message]).toEqual([
    "error",
    expect.stringContaining("has given snapshot"),
  ]);
});

test("a guest stays with the new file of a snapshot that Cinder has made, and that a user deletes before the conductor sees it", async () => {
  await running();
  cinder.snapshotFiles.holds = true;
  let isTold = false;
  cinder.fate = (method) => {
    if (method === "reportSnapshot") isTold = true;
    else if (method === "snapshot" && isTold)
      for (const { id, status } of [...cinder.snapshotFiles.all.values()]) {
        if (status !== "creating") continue;
        cinder.snapshotFiles.goOn(id);
        cinder.snapshotFiles.beginDeletion(id);
        // The cell refuses to merge anything meanwhile.
        cinder.snapshotFiles.giveUp(id);
      }
    return "answered";
  };
  const { id, file } = await begin();
  await eventually("the operation to end", async () => (await cell.server(1)).taskState === null);
  expect([statusOf(id), (await cell.server(1)).fault]).toEqual(["error_deleting", null]);
  await agree(file, firstFile());
});

test("Cinder deletes no file before it is merged when a deletion that has failed is repeated", async () => {
  await running();
  const { id, file } = await made();
  const deleted: string[] = [];
  cinder.snapshotFiles.onDeleted = (_, one) => {
    expect(used()).not.toContain(one);
    deleted.push(one);
  };
  await driver.snapshotVolume(
    { host: "host-0", serverUuid: serverId(1), attemptId: driver.guests()[0]!.attemptId },
    { ...(await present()), connection: "" },
    { snapshot: { snapshotId: id, newFile: file, fileToMerge: "", mergeTarget: "" }, step: "return" },
    new AbortController().signal,
  );
  await beginDeletion(id);
  await eventually("Cinder to be told", () => statusOf(id) === "error_deleting");
  await cell.rest(1);
  await cell.operate({ server: 1, kind: "hard-reboot" });
  await cell.rest(1);
  await beginDeletion(id);
  await eventually("the snapshot to be gone", () => statusOf(id) === undefined);
  expect(deleted).toEqual([firstFile()]);
  await agree(file);
});

test("no guest is switched for a snapshot that Cinder does not wait for", async () => {
  await running();
  const calls: string[] = [];
  const { id } = cinder.putSnapshot(volumeId, { status: "error" });
  cinder.fate = (method) => {
    calls.push(method);
    return "answered";
  };
  const snapshot = { snapshotId: id, newFile: "volume-new", fileToMerge: "", mergeTarget: "" };
  await cell.operate({
    server: 1,
    kind: "snapshot-volume",
    volume: { ...(await present()), file: "volume-new" },
    snapshot,
  });
  await eventually("the operation to end", async () => (await cell.server(1)).taskState === null);
  await agree(firstFile());
  expect(calls).toContain("reportSnapshot");
});

test("nothing is merged, and Cinder keeps all files, while the guest writes to another file than Cinder names", async () => {
  await running();
  const { id, file } = await made();
  // The guest of a host that was taken for dead has gone on with its former file.
  await driver.snapshotVolume(
    { host: "host-0", serverUuid: serverId(1), attemptId: driver.guests()[0]!.attemptId },
    { ...(await present()), connection: "" },
    { snapshot: { snapshotId: id, newFile: file, fileToMerge: "", mergeTarget: "" }, step: "return" },
    new AbortController().signal,
  );
  expect(used()).toEqual([firstFile()]);
  let deletions = 0;
  cinder.snapshotFiles.onDeleted = () => {
    deletions += 1;
  };
  await beginDeletion(id);
  await eventually("Cinder to be told", () => statusOf(id) === "error_deleting");
  expect((await cell.rest(1)).fault?.message).toContain(`the guest writes to ${firstFile()}`);
  expect([deletions, used()]).toEqual([0, [firstFile()]]);
});

test("a host that is forced down during a snapshot, and comes back with the former file, deletes nothing that its guest uses, and starts it with the new file", async () => {
  const lost = Promise.withResolvers<void>();
  let hasHeard = false;
  const snapshotVolume: Driver["snapshotVolume"] = (...args) => {
    if (hasHeard) return driver.snapshotVolume(...args);
    hasHeard = true;
    // The order has reached the host, which does nothing.
    return lost.promise;
  };
  await running({ wrap: (one) => proxied(one, { snapshotVolume }) });
  const { id, file } = await begin();
  await eventually("the host to have the order", () => hasHeard);
  agent.cutOff();
  await cell.store.hostAdmin().setForcedDown("host-0", true);
  await eventually("the snapshot to be made", () => statusOf(id) === "available");
  expect(await cell.rest(1)).toMatchObject({ status: "ACTIVE", spec: { volumes: [{ file }] } });
  expect([cell.runsOn(1), used()]).toEqual([["host-0"], [firstFile()]]);
  lost.reject(new Error("the host was lost"));
  await cell.store.hostAdmin().setForcedDown("host-0", false);
  agent.reconnect();
  await cell.hostsUp(1);
  await beginDeletion(id);
  await eventually("Cinder to be told", () => statusOf(id) === "error_deleting");
  await cell.rest(1);
  expect(used()).toEqual([firstFile()]);
  await cell.operate({ server: 1, kind: "hard-reboot" });
  await agree(file, firstFile());
});

test("no guest is started while Cinder names another file than the one to which a fenced host's guest may have written", async () => {
  const lost = Promise.withResolvers<void>();
  let hasHeard = false;
  const snapshotVolume: Driver["snapshotVolume"] = async (...args) => {
    await driver.snapshotVolume(...args);
    if (hasHeard) return;
    hasHeard = true;
    return lost.promise;
  };
  await running({ wrap: (one) => proxied(one, { snapshotVolume }) });
  const { id, file } = await begin();
  await eventually("the host to have switched", () => hasHeard);
  agent.cutOff();
  cinder.snapshotFiles.giveUp(id);
  await cell.store.hostAdmin().setForcedDown("host-0", true);
  expect(await cell.become(1, "ERROR")).toMatchObject({ spec: { volumes: [{ file }] } });
  await cell.rest(1);
  lost.reject(new Error("the host was lost"));
  await cell.store.hostAdmin().setForcedDown("host-0", false);
  agent.reconnect();
  await cell.hostsUp(1);
  await cell.operate({ server: 1, kind: "hard-reboot" });
  const { fault } = await cell.rest(1);
  expect(fault?.message).toContain(`Cinder names the file ${firstFile()}`);
  expect(used()?.[0]).toBe(file);
});

const CALLS = ["reportSnapshot", "snapshot", "attachment"] as const;
test.each(CALLS)(
  "the next conductor finishes a snapshot and its deletion when the first one dies at the call %s",
  async (method) => {
    await running();
    let isAsked = false;
    const dieAt = (called: string) => {
      if (called === method) isAsked = true;
      return called === method ? ("lost" as const) : ("answered" as const);
    };
    cinder.snapshotFiles.holds = true;
    cinder.fate = dieAt;
    const { id, file } = await begin();
    await eventually("the first conductor to call Cinder", () => isAsked);
    await first.kill();
    cinder.fate = () => "answered";
    cinder.snapshotFiles.holds = false;
    await cell.startConductor(2, {});
    await eventually("the snapshot to be made", () => statusOf(id) === "available");
    await agree(file, firstFile());
  },
);

test("a server waits while Cinder is away longer than conductors wait for it", async () => {
  await running({ conductor: { volumeConnectTimeoutMs: 0 } });
  let [isAway, asked] = [true, 0];
  cinder.fate = (method) => {
    if (method !== "reportSnapshot") return "answered";
    asked += 1;
    return isAway ? "silent" : "answered";
  };
  const { id, file } = await begin();
  await eventually("Cinder to be asked again", () => asked >= 3);
  expect(await cell.server(1)).toMatchObject({ status: "ACTIVE", taskState: "snapshotting_volume" });
  isAway = false;
  await eventually("the snapshot to be made", () => statusOf(id) === "available");
  await agree(file, firstFile());
});

/** The driver with some methods of its own. */
function proxied(one: FakeDriver, own: Partial<Driver>): Driver {
  return new Proxy<Driver>(one, {
    get: (target, name: keyof Driver) => {
      const value = own[name] ?? target[name];
      return typeof value === "function" && own[name] === undefined ? value.bind(target) : value;
    },
  });
}
