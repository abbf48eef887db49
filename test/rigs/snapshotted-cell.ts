import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import { MemoryBlockStorage } from "../../adapters/memory/memory-block-storage.ts";
import type { ServerVolume } from "../../proto/gen/berth/shared.ts";
import type { Driver } from "../../services/compute-agent/driver.ts";
import type { FakeDriver } from "../../services/compute-agent/fake-driver.ts";
import type { FakeScript } from "../../services/compute-agent/fake-script.ts";
import { NO_SHARE } from "../../services/compute-agent/fake-volume-files.ts";
import type { ConductorSettings } from "../../services/conductor/settings.ts";
import { serverId } from "../contract/cell-fixtures.ts";
import { volumeOf } from "./begin-operation.ts";
import { eventually } from "./eventually.ts";
import { SmallCell } from "./small-cell.ts";

const OWN = { callerToken: null, requestId: null };

/** A small cell whose server 1 runs on host-0 with a volume in Cinder, of which snapshots are made. */
export class SnapshottedCell {
  readonly cell: SmallCell;
  readonly cinder: MemoryBlockStorage;
  #driver: FakeDriver | null = null;
  #parts: {
    readonly first: Awaited<ReturnType<SmallCell["startConductor"]>>;
    readonly agent: Awaited<ReturnType<SmallCell["startAgent"]>>;
  } | null = null;
  #volumeId = "";

  /** `speed`: as in a `SmallCell`. */
  constructor(options: ConstructorParameters<typeof SmallCell>[0] = {}) {
    this.cell = new SmallCell(options);
    this.cinder = new MemoryBlockStorage({ newId: randomUUID });
    this.cell.blockStorage = this.cinder;
  }

  get driver(): FakeDriver {
    if (this.#driver === null) throw new Error("the agent has not started");
    return this.#driver;
  }

  get first() {
    if (this.#parts === null) throw new Error("the conductor has not started");
    return this.#parts.first;
  }

  get agent() {
    if (this.#parts === null) throw new Error("the agent has not started");
    return this.#parts.agent;
  }

  get volumeId(): string {
    return this.#volumeId;
  }

  get firstFile(): string {
    return `volume-${this.#volumeId}`;
  }

  /** Starts a conductor, an agent with these hosts, and the server. `wrap` stands before the driver. */
  async running({
    fake,
    wrap = (one) => one,
    conductor = {},
    hosts = [0],
  }: {
    readonly fake?: FakeScript;
    readonly wrap?: (driver: FakeDriver) => Driver;
    readonly conductor?: Partial<ConductorSettings>;
    readonly hosts?: readonly number[];
  } = {}): Promise<void> {
    const { cell, cinder } = this;
    await cell.open();
    const first = await cell.startConductor(1, conductor);
    const before = (one: FakeDriver) => {
      this.#driver = one;
      return wrap(one);
    };
    const share = {
      ...NO_SHARE,
      chainOf: (file: string) => cinder.snapshotFiles.chainFrom(file),
    };
    const at = { id: "agent-0", hosts: [...hosts], vcpus: 4, conductors: [1, 2] };
    const agent = await cell.startAgent({ ...at, before, share, ...(fake && { fake }) });
    this.#parts = { first, agent };
    await cell.hostsUp(hosts.length);
    const { id } = cinder.putVolume({ projectId: "one" });
    this.#volumeId = id;
    const kept = await cinder.reserve({ volumeId: id, serverUuid: serverId(1), connector: null }, OWN);
    if (kept.kind !== "reserved") throw new Error(kept.kind);
    const volume = { ...volumeOf(1), volumeId: id, attachmentId: kept.attachment.id, inCinder: true };
    await cell.boot(1, [0], { volumes: [volume] });
    await cell.become(1, "ACTIVE");
  }

  async present(): Promise<ServerVolume> {
    return (await this.cell.server(1)).spec.volumes[0]!;
  }

  /** The files of the guest's volume: the one to which it writes, and those that this one refers to. */
  used(): readonly string[] | undefined {
    return this.driver.guests().find(({ running }) => running)?.files?.[this.#volumeId];
  }

  statusOf(id: string): string | undefined {
    return this.cinder.snapshotFiles.all.get(id)?.status;
  }

  /** Cinder makes a snapshot, for which the cell is asked to let the guest write to a new file. */
  async begin(): Promise<{ readonly id: string; readonly file: string }> {
    const { cell, cinder } = this;
    const { id } = cinder.putSnapshot(this.#volumeId, { status: "creating" });
    const file = cinder.snapshotFiles.begin(cinder.snapshotFiles.all.get(id)!);
    const snapshot = { snapshotId: id, newFile: file, fileToMerge: "", mergeTarget: "" };
    const volume = { ...(await this.present()), file };
    await cell.operate({ server: 1, kind: "snapshot-volume", volume, snapshot });
    return { id, file };
  }

  /** Cinder deletes a snapshot. Returns the file that it will delete. */
  async beginDeletion(id: string): Promise<string> {
    const wish = this.cinder.snapshotFiles.beginDeletion(id);
    if (wish === null) throw new Error("Cinder does not ask for anything");
    const { fileToMerge, mergeTarget, deletes } = wish;
    const snapshot = { snapshotId: id, newFile: "", fileToMerge: fileToMerge ?? "", mergeTarget: mergeTarget ?? "" };
    await this.cell.operate({ server: 1, kind: "merge-volume", volume: await this.present(), snapshot });
    return deletes;
  }

  async made(): Promise<{ readonly id: string; readonly file: string }> {
    const one = await this.begin();
    await eventually("the snapshot to be made", () => this.statusOf(one.id) === "available");
    expect(await this.cell.rest(1)).toMatchObject({ status: "ACTIVE", fault: null });
    return one;
  }

  /** The server, Cinder and the guest agree about the volume's files. */
  async agree(...files: readonly string[]): Promise<void> {
    expect(await this.cell.rest(1)).toMatchObject({ status: "ACTIVE" });
    expect(this.used()).toEqual(files);
    expect(this.cinder.snapshotFiles.chainOf(this.#volumeId)).toEqual(files);
    const { file } = await this.present();
    expect(file === "" ? this.firstFile : file).toBe(files[0]);
  }
}
