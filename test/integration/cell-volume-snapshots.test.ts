import { afterEach, beforeEach, expect, test } from "vitest";
import type { Driver } from "../../services/compute-agent/driver.ts";
import type { FakeDriver } from "../../services/compute-agent/fake-driver.ts";
import { serverId } from "../contract/cell-fixtures.ts";
import { eventually } from "../rigs/eventually.ts";
import { SnapshottedCell } from "../rigs/snapshotted-cell.ts";

let scene: SnapshottedCell;
beforeEach(() => {
  scene = new SnapshottedCell();
});
afterEach(() => scene.cell.close());

test("a guest writes to the new file of a snapshot, which Cinder names from then on", async () => {
  await scene.running();
  const { file } = await scene.made();
  await scene.agree(file, scene.firstFile);
  const [attachment] = await scene.cinder.attachments({ volumeId: scene.volumeId });
  expect((await scene.cinder.attachment(attachment?.id ?? ""))?.connection).toMatchObject({ name: file });
});

test("files are merged when snapshots are deleted, in any order, and Cinder deletes none that the guest uses", async () => {
  await scene.running();
  const [one, two, three] = [await scene.made(), await scene.made(), await scene.made()];
  const deleted: string[] = [];
  scene.cinder.snapshotFiles.onDeleted = (_, file) => {
    expect(scene.used()).not.toContain(file);
    deleted.push(file);
  };
  const deletes = [await scene.beginDeletion(two.id)];
  await eventually("the second one to be gone", () => scene.statusOf(two.id) === undefined);
  await scene.agree(three.file, one.file, scene.firstFile);
  deletes.push(await scene.beginDeletion(three.id));
  await eventually("the third one to be gone", () => scene.statusOf(three.id) === undefined);
  await scene.agree(three.file, scene.firstFile);
  deletes.push(await scene.beginDeletion(one.id));
  await eventually("the first one to be gone", () => scene.statusOf(one.id) === undefined);
  await scene.agree(three.file);
  expect(deleted).toEqual(deletes);
});

test("a snapshot ends in error, and the guest keeps its file, if the host cannot switch", async () => {
  await scene.running({ fake: { replace_failures: 1 } });
  const { id } = await scene.begin();
  await eventually("Cinder to be told", () => scene.statusOf(id) === "error");
  await scene.agree(scene.firstFile);
  expect((await scene.cell.server(1)).fault?.message).toContain("the storage is broken");
});

test("a guest that was switched although its host says that it was not goes back", async () => {
  let isFirst = true;
  const snapshotVolume: Driver["snapshotVolume"] = async (...args) => {
    await scene.driver.snapshotVolume(...args);
    if (isFirst) {
      isFirst = false;
      throw new Error("QEMU did not answer in time");
    }
  };
  await scene.running({ wrap: (one) => proxied(one, { snapshotVolume }) });
  const { id } = await scene.begin();
  await eventually("Cinder to be told", () => scene.statusOf(id) === "error");
  await scene.agree(scene.firstFile);
});

test("a guest goes back to its former file if Cinder has given the snapshot up meanwhile", async () => {
  let switched: () => void = () => {};
  const snapshotVolume: Driver["snapshotVolume"] = async (...args) => {
    await scene.driver.snapshotVolume(...args);
    switched();
  };
  await scene.running({ wrap: (one) => proxied(one, { snapshotVolume }) });
  switched = () => {
    for (const [id, { status }] of scene.cinder.snapshotFiles.all)
      if (status === "creating") scene.cinder.snapshotFiles.giveUp(id);
  };
  const { id } = await scene.begin();
  await eventually("the operation to end", async () => (await scene.cell.server(1)).taskState === null);
  await scene.agree(scene.firstFile);
  expect([scene.statusOf(id), (await scene.cell.server(1)).fault?.message]).toEqual([
    "error",
    expect.stringContaining("has given snapshot"),
  ]);
});

test("a guest stays with the new file of a snapshot that Cinder has made, and that a user deletes before the conductor sees it", async () => {
  await scene.running();
  scene.cinder.snapshotFiles.holds = true;
  let isTold = false;
  scene.cinder.fate = (method) => {
    if (method === "reportSnapshot") isTold = true;
    else if (method === "snapshot" && isTold)
      for (const { id, status } of [...scene.cinder.snapshotFiles.all.values()]) {
        if (status !== "creating") continue;
        scene.cinder.snapshotFiles.goOn(id);
        scene.cinder.snapshotFiles.beginDeletion(id);
        // The cell refuses to merge anything meanwhile.
        scene.cinder.snapshotFiles.giveUp(id);
      }
    return "answered";
  };
  const { id, file } = await scene.begin();
  await eventually("the operation to end", async () => (await scene.cell.server(1)).taskState === null);
  expect([scene.statusOf(id), (await scene.cell.server(1)).fault]).toEqual(["error_deleting", null]);
  await scene.agree(file, scene.firstFile);
});

test("Cinder deletes no file before it is merged when a deletion that has failed is repeated", async () => {
  await scene.running();
  const { id, file } = await scene.made();
  const deleted: string[] = [];
  scene.cinder.snapshotFiles.onDeleted = (_, one) => {
    expect(scene.used()).not.toContain(one);
    deleted.push(one);
  };
  await scene.driver.snapshotVolume(
    { host: "host-0", serverUuid: serverId(1), attemptId: scene.driver.guests()[0]!.attemptId },
    { ...(await scene.present()), connection: "" },
    { snapshot: { snapshotId: id, newFile: file, fileToMerge: "", mergeTarget: "" }, step: "return" },
    new AbortController().signal,
  );
  await scene.beginDeletion(id);
  await eventually("Cinder to be told", () => scene.statusOf(id) === "error_deleting");
  await scene.cell.rest(1);
  await scene.cell.operate({ server: 1, kind: "hard-reboot" });
  await scene.cell.rest(1);
  await scene.beginDeletion(id);
  await eventually("the snapshot to be gone", () => scene.statusOf(id) === undefined);
  expect(deleted).toEqual([scene.firstFile]);
  await scene.agree(file);
});

test("no guest is switched for a snapshot that Cinder does not wait for", async () => {
  await scene.running();
  const calls: string[] = [];
  const { id } = scene.cinder.putSnapshot(scene.volumeId, { status: "error" });
  scene.cinder.fate = (method) => {
    calls.push(method);
    return "answered";
  };
  const snapshot = { snapshotId: id, newFile: "volume-new", fileToMerge: "", mergeTarget: "" };
  await scene.cell.operate({
    server: 1,
    kind: "snapshot-volume",
    volume: { ...(await scene.present()), file: "volume-new" },
    snapshot,
  });
  await eventually("the operation to end", async () => (await scene.cell.server(1)).taskState === null);
  await scene.agree(scene.firstFile);
  expect(calls).toContain("reportSnapshot");
});

test("nothing is merged, and Cinder keeps all files, while the guest writes to another file than Cinder names", async () => {
  await scene.running();
  const { id, file } = await scene.made();
  // The guest of a host that was taken for dead has gone on with its former file.
  await scene.driver.snapshotVolume(
    { host: "host-0", serverUuid: serverId(1), attemptId: scene.driver.guests()[0]!.attemptId },
    { ...(await scene.present()), connection: "" },
    { snapshot: { snapshotId: id, newFile: file, fileToMerge: "", mergeTarget: "" }, step: "return" },
    new AbortController().signal,
  );
  expect(scene.used()).toEqual([scene.firstFile]);
  let deletions = 0;
  scene.cinder.snapshotFiles.onDeleted = () => {
    deletions += 1;
  };
  await scene.beginDeletion(id);
  await eventually("Cinder to be told", () => scene.statusOf(id) === "error_deleting");
  expect((await scene.cell.rest(1)).fault?.message).toContain(`the guest writes to ${scene.firstFile}`);
  expect([deletions, scene.used()]).toEqual([0, [scene.firstFile]]);
});

test("a host that is forced down during a snapshot, and comes back with the former file, deletes nothing that its guest uses, and starts it with the new file", async () => {
  const lost = Promise.withResolvers<void>();
  let hasHeard = false;
  const snapshotVolume: Driver["snapshotVolume"] = (...args) => {
    if (hasHeard) return scene.driver.snapshotVolume(...args);
    hasHeard = true;
    // The order has reached the host, which does nothing.
    return lost.promise;
  };
  await scene.running({ wrap: (one) => proxied(one, { snapshotVolume }) });
  const { id, file } = await scene.begin();
  await eventually("the host to have the order", () => hasHeard);
  scene.agent.cutOff();
  await scene.cell.store.hostAdmin().setForcedDown("host-0", true);
  await eventually("the snapshot to be made", () => scene.statusOf(id) === "available");
  expect(await scene.cell.rest(1)).toMatchObject({ status: "ACTIVE", spec: { volumes: [{ file }] } });
  expect([scene.cell.runsOn(1), scene.used()]).toEqual([["host-0"], [scene.firstFile]]);
  lost.reject(new Error("the host was lost"));
  await scene.cell.store.hostAdmin().setForcedDown("host-0", false);
  scene.agent.reconnect();
  await scene.cell.hostsUp(1);
  await scene.beginDeletion(id);
  await eventually("Cinder to be told", () => scene.statusOf(id) === "error_deleting");
  await scene.cell.rest(1);
  expect(scene.used()).toEqual([scene.firstFile]);
  await scene.cell.operate({ server: 1, kind: "hard-reboot" });
  await scene.agree(file, scene.firstFile);
});

test("no guest is started while Cinder names another file than the one to which a fenced host's guest may have written", async () => {
  const lost = Promise.withResolvers<void>();
  let hasHeard = false;
  const snapshotVolume: Driver["snapshotVolume"] = async (...args) => {
    await scene.driver.snapshotVolume(...args);
    if (hasHeard) return;
    hasHeard = true;
    return lost.promise;
  };
  await scene.running({ wrap: (one) => proxied(one, { snapshotVolume }) });
  const { id, file } = await scene.begin();
  await eventually("the host to have switched", () => hasHeard);
  scene.agent.cutOff();
  scene.cinder.snapshotFiles.giveUp(id);
  await scene.cell.store.hostAdmin().setForcedDown("host-0", true);
  expect(await scene.cell.become(1, "ERROR")).toMatchObject({ spec: { volumes: [{ file }] } });
  await scene.cell.rest(1);
  lost.reject(new Error("the host was lost"));
  await scene.cell.store.hostAdmin().setForcedDown("host-0", false);
  scene.agent.reconnect();
  await scene.cell.hostsUp(1);
  await scene.cell.operate({ server: 1, kind: "hard-reboot" });
  const { fault } = await scene.cell.rest(1);
  expect(fault?.message).toContain(`Cinder names the file ${scene.firstFile}`);
  expect(scene.used()?.[0]).toBe(file);
});

const CALLS = ["reportSnapshot", "snapshot", "attachment"] as const;
test.each(CALLS)(
  "the next conductor finishes a snapshot and its deletion when the first one dies at the call %s",
  async (method) => {
    await scene.running();
    let isAsked = false;
    const dieAt = (called: string) => {
      if (called === method) isAsked = true;
      return called === method ? ("lost" as const) : ("answered" as const);
    };
    scene.cinder.snapshotFiles.holds = true;
    scene.cinder.fate = dieAt;
    const { id, file } = await scene.begin();
    await eventually("the first conductor to call Cinder", () => isAsked);
    await scene.first.kill();
    scene.cinder.fate = () => "answered";
    scene.cinder.snapshotFiles.holds = false;
    await scene.cell.startConductor(2, {});
    await eventually("the snapshot to be made", () => scene.statusOf(id) === "available");
    await scene.agree(file, scene.firstFile);
  },
);

test("a server waits while Cinder is away longer than conductors wait for it", async () => {
  await scene.running({ conductor: { volumeConnectTimeoutMs: 0 } });
  let [isAway, asked] = [true, 0];
  scene.cinder.fate = (method) => {
    if (method !== "reportSnapshot") return "answered";
    asked += 1;
    return isAway ? "silent" : "answered";
  };
  const { id, file } = await scene.begin();
  await eventually("Cinder to be asked again", () => asked >= 3);
  expect(await scene.cell.server(1)).toMatchObject({ status: "ACTIVE", taskState: "snapshotting_volume" });
  isAway = false;
  await eventually("the snapshot to be made", () => scene.statusOf(id) === "available");
  await scene.agree(file, scene.firstFile);
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
