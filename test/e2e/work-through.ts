import { expect } from "vitest";
import type { Server } from "../../core/tasks/server.ts";
import { eventually } from "../rigs/eventually.ts";
import type { E2eCell } from "./cell.ts";
import type { Cloud } from "./cloud.ts";

const PATIENT = { everyMs: 100, withinMs: 90_000 };
/** The first host of each build and of each move fails. */
const BUMPY = { outcome: "reschedule", first: 1, reason: "disk full" } as const;

/**
 * Users' actions on a cloud, in rounds between which its operators change the cloud. A round ends the actions that the previous one began.
 */
export class WorkThrough {
  readonly #cloud: Cloud;
  readonly #flavors: readonly [string, string];
  /** Servers that were resized in the previous round and neither confirmed nor reverted. */
  #resized: readonly Placed[] = [];
  #rounds = 0;

  private constructor(cloud: Cloud, flavors: readonly [string, string]) {
    this.#cloud = cloud;
    this.#flavors = flavors;
  }

  static async open(cloud: Cloud): Promise<WorkThrough> {
    return new WorkThrough(cloud, [await cloud.compute.flavor(), await cloud.compute.flavor()]);
  }

  /** Requests builds that take so long that they are still running during the next steps. Resolves with their UUIDs. */
  beginBuilds(count: number): Promise<readonly string[]> {
    return this.#cloud.compute.bootMany(count, { flavor: this.#flavors[0], fake: { duration_ms: 2_500 } });
  }

  /**
   * Confirms or reverts the previous round's resizes and deletes their servers. Then boots, moves and resizes servers, some of them to
   * alternates, and deletes. Throws unless each server ends as it should, holds only its own allocation, and the audit is clean.
   */
  async round(begun: readonly string[] = []): Promise<void> {
    const { compute } = this.#cloud;
    const [flavor, other] = this.#flavors;
    this.#rounds += 1;
    await this.#endResizes();
    const plain = await compute.bootMany(3, { flavor });
    const bumpy = await compute.bootMany(3, { flavor, fake: BUMPY });
    const uuids = [...begun, ...plain, ...bumpy];
    const servers = await compute.ended(uuids);
    expect(servers.map(({ status, fault }) => [status, fault?.message])).toEqual(
      uuids.map(() => ["ACTIVE", undefined]),
    );
    for (const uuid of bumpy) {
      const [failed, built] = await compute.attempts(uuid);
      expect([failed?.result, failed?.details, built?.result]).toEqual(["Error", "disk full", "Success"]);
      expect(built?.host).not.toBe(failed?.host);
    }
    const placed = await Promise.all(uuids.map((uuid) => this.#placed(uuid)));
    const [live, cold, resized] = [plain, bumpy, [...plain.slice(1, 2), ...bumpy.slice(1, 2)]];
    await this.#move(placed, [live[0] ?? "", cold[0] ?? ""], "os-migrateLive", LIVE, "ACTIVE");
    this.#resized = await this.#move(placed, resized, "resize", { flavorRef: other }, "VERIFY_RESIZE");
    const rest = uuids.filter((uuid) => !resized.includes(uuid));
    await Promise.all(rest.map((uuid) => compute.delete(uuid)));
    await compute.gone(rest);
    await this.#cloud.expectCleanAudit();
  }

  /** Ends everything that the previous round has begun, and expects nothing to be left. */
  async end(): Promise<void> {
    await this.#endResizes();
    await this.#cloud.expectCleanAudit();
    expect(await this.#cloud.compute.list()).toEqual([]);
  }

  /** Confirms and reverts resizes in turns, then deletes the servers. */
  async #endResizes(): Promise<void> {
    const resized = this.#resized;
    const action = this.#rounds % 2 === 0 ? "confirmResize" : "revertResize";
    await this.#move(
      resized,
      resized.map(({ uuid }) => uuid),
      action,
      null,
      "ACTIVE",
    );
    await Promise.all(resized.map(({ uuid }) => this.#cloud.compute.delete(uuid)));
    await this.#cloud.compute.gone(resized.map(({ uuid }) => uuid));
    this.#resized = [];
  }

  /** Does the same to several servers and resolves with their new places. */
  #move(
    placed: readonly Placed[],
    uuids: readonly string[],
    action: string,
    value: unknown,
    status: string,
  ): Promise<readonly Placed[]> {
    return Promise.all(
      uuids.map(async (uuid) => {
        const before = placed.find((one) => one.uuid === uuid);
        if (before === undefined) throw new Error(`${uuid} is nowhere`);
        const answer = await this.#cloud.compute.call("POST", `/servers/${uuid}/action`, { [action]: value });
        expect([action, answer.status, await answer.text()]).toEqual([
          action,
          action === "confirmResize" ? 204 : 202,
          "",
        ]);
        const after = await this.#settled(before.cell, uuid, action);
        expect([action, after.status]).toEqual([action, status]);
        if (action === "resize" || action === "os-migrateLive") expect(after.host).not.toBe(before.host);
        if (status === "ACTIVE") expect(await before.cell.holders(uuid)).toEqual([after.host]);
        return { ...before, host: after.host };
      }),
    );
  }

  /**
   * The server as its cell has it once no operation is running. An accepted move is in the cell when the call is answered, or on its way
   * there.
   */
  #settled(cell: E2eCell, uuid: string, action: string): Promise<Server> {
    return eventually(
      `${action} of ${uuid} to end`,
      async () => {
        const shown = await this.#cloud.compute.show(uuid);
        const [server] = await cell.store.servers([uuid]);
        if (shown === null || server === undefined) throw new Error(`${uuid} is gone`);
        return shown["OS-EXT-STS:task_state"] === null && server.taskState === null && server;
      },
      PATIENT,
    );
  }

  async #placed(uuid: string): Promise<Placed> {
    for (const cell of this.#cloud.cells) {
      const [server] = await cell.store.servers([uuid]);
      if (server === undefined) continue;
      expect(await cell.holders(uuid)).toEqual([server.host]);
      return { uuid, cell, host: server.host };
    }
    throw new Error(`${uuid} is in no cell`);
  }
}

const LIVE = { host: null, block_migration: "auto" };

interface Placed {
  readonly uuid: string;
  readonly cell: E2eCell;
  readonly host: string | null;
}
