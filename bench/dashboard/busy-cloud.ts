import type { AttemptResult } from "../../core/tasks/server.ts";
import type { CellPort } from "../../services/api/ports.ts";
import { hostName, MixedCloud, serverRow } from "../scheduling/mixed-cloud.ts";

const FLAVOR = 0;
/** The share of servers whose first host fails. */
const HOP_SHARE = 0.25;
/** Servers that live at the same time. Older ones are deleted, so that the cloud stays as full as it was. */
const LIVING_MAX = 3_000;

interface BusyServer {
  readonly uuid: string;
  readonly cell: number;
  readonly startedAtMs: number;
  readonly attempts: { host: number; at: number; endedAt: number | null; result: AttemptResult | null }[];
  readonly hopsLeft: number;
}

/**
 * Cells whose servers are built, hop and are deleted as fast as it is told to. Each event is what the follower of a cell applies: a row of
 * a server, with the inventories of the hosts that it takes or leaves. The cells answer the dashboard's questions about attempts.
 */
export class BusyCloud {
  readonly cells: readonly MixedCloud[];
  readonly #random: () => number;
  readonly #building: BusyServer[] = [];
  readonly #living: BusyServer[] = [];
  readonly #known = new Map<string, BusyServer>();
  #numbered = 0;
  active = 0;

  constructor(cells: number, hosts: number, random: () => number) {
    this.#random = random;
    this.cells = Array.from(
      { length: cells },
      (_, index) => new MixedCloud(hosts, random, { name: `cell-${index + 1}` }),
    );
  }

  ports(): readonly CellPort[] {
    const source = { ready: true, lagMs: 2, waitUntilSeen: async () => true };
    return this.cells.map(({ name, view, facts }) => ({ name, view, facts, source }) as unknown as CellPort);
  }

  /** Applies one event: the next step of a server that is being built, the delete of an old one, or a new server. */
  event(nowMs: number): void {
    const oldest = this.#building[0];
    if (this.#living.length > LIVING_MAX) this.#delete();
    else if (oldest !== undefined && nowMs - oldest.startedAtMs > 1_000) this.#step(nowMs);
    else this.#begin(nowMs);
  }

  /** The attempts of these servers, as their cell would answer. */
  attemptsOf(uuids: readonly string[]) {
    return uuids.flatMap((uuid) =>
      (this.#known.get(uuid)?.attempts ?? []).map(({ host, at, endedAt, result }, selection) => ({
        ...{
          taskId: uuid,
          selection,
          serverUuid: uuid,
          host: hostName(host),
          startedAtMs: at,
          endedAtMs: endedAt,
          result,
        },
        reason: result === "failed" ? "disk full" : null,
      })),
    );
  }

  /** The part of these servers' rows that the dashboard reads. */
  serversOf(uuids: readonly string[]) {
    return uuids.flatMap((uuid) => {
      const server = this.#known.get(uuid);
      const last = server?.attempts.at(-1);
      if (last === undefined) return [];
      const isBuilding = last.result !== "success";
      return {
        ...{ uuid, host: hostName(last.host), fault: null, deletedAtMs: null, updatedAtMs: last.endedAt ?? last.at },
        ...{ status: isBuilding ? "BUILD" : "ACTIVE", taskState: isBuilding ? "spawning" : null },
      };
    });
  }

  #begin(nowMs: number): void {
    this.#numbered += 1;
    const cell = Math.floor(this.#random() * this.cells.length);
    const uuid = `00000000-0000-4000-9000-${this.#numbered.toString(16).padStart(12, "0")}`;
    const host = this.#hostOf(cell);
    const hopsLeft = this.#random() < HOP_SHARE ? 1 : 0;
    const attempts = [{ host, at: nowMs, endedAt: null, result: null }];
    const server: BusyServer = { uuid, cell, startedAtMs: nowMs, attempts, hopsLeft };
    this.#known.set(uuid, server);
    this.#building.push(server);
    this.#put(server, host, "BUILD");
  }

  #step(nowMs: number): void {
    const server = this.#building.shift() as BusyServer;
    const last = server.attempts.at(-1)!;
    last.endedAt = nowMs;
    if (server.attempts.length <= server.hopsLeft) {
      last.result = "failed";
      this.cells[server.cell]!.take(last.host, FLAVOR, -1);
      const host = this.#hostOf(server.cell);
      server.attempts.push({ host, at: nowMs, endedAt: null, result: null });
      this.#building.push({ ...server, startedAtMs: nowMs });
      this.#put(server, host, "BUILD");
    } else {
      last.result = "success";
      this.active += 1;
      this.#living.push(server);
      this.cells[server.cell]!.apply(rowOf(server, last.host, "ACTIVE"));
    }
  }

  #delete(): void {
    const server = this.#living.shift() as BusyServer;
    this.#known.delete(server.uuid);
    this.cells[server.cell]!.move(server.uuid, server.attempts.at(-1)!.host, FLAVOR, -1);
  }

  #put(server: BusyServer, host: number, status: "BUILD" | "ACTIVE"): void {
    const cell = this.cells[server.cell]!;
    cell.take(host, FLAVOR);
    cell.apply(rowOf(server, host, status));
  }

  #hostOf(cell: number): number {
    return Math.floor(this.#random() * this.cells[cell]!.hosts);
  }
}

function rowOf({ uuid }: BusyServer, host: number, status: "BUILD" | "ACTIVE") {
  const row = serverRow(uuid, host, FLAVOR);
  return { ...row, status, taskState: status === "BUILD" ? "spawning" : null } as typeof row;
}
