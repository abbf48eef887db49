import { ApiAuditReader } from "../adapters/postgres/audit/api-audit-reader.ts";
import { CellAuditReader } from "../adapters/postgres/audit/cell-audit-reader.ts";
import { auditServers } from "../core/audit/audit-cloud.ts";
import { checkCapacity } from "../core/audit/check-capacity.ts";
import { checkGroups } from "../core/audit/check-groups.ts";
import { checkVolumes } from "../core/audit/check-volumes.ts";
import type { CellReading } from "../core/audit/facts.ts";
import type { Violation } from "../core/audit/violation.ts";
import { type AuditedStorage, readCinder } from "./read-cinder.ts";
import type { GuestReading } from "./read-guests.ts";
import { type GuestsByHost, SortedGuests } from "./sorted-guests.ts";

export interface AuditedCell {
  readonly name: string;
  readonly databaseUrl: string;
  /** Reads the running guests on the cell's hosts, when its agents are in this process. */
  readonly runningGuests?: () => GuestsByHost | Promise<GuestsByHost>;
  /** Reads all guests on the cell's hosts, running or not. */
  readonly copies?: () => GuestsByHost | Promise<GuestsByHost>;
}

export interface AuditedCloud {
  readonly apiUrl: string;
  readonly cells: readonly AuditedCell[];
  /** Reads the guests on hosts whose agents are in other processes. */
  readonly readGuests?: (() => Promise<GuestReading>) | undefined;
  /** The Block Storage service with which the servers' volumes are compared. */
  readonly blockStorage?: AuditedStorage | undefined;
}

/** The result of one reading of a cloud. */
export interface CloudReading {
  /** What the reading shows to be wrong; it may be work in flight. */
  readonly violations: readonly Violation[];
  /** The cells that were read. */
  readonly cells: readonly string[];
  readonly counts: ReadingCounts;
  /** Whether the guests of every host of these cells are known. */
  readonly isEveryHostAsked: boolean;
  /** Cells that could not be read, each with the reason. */
  readonly unread: ReadonlyMap<string, string>;
  /** Agents, journals and hosts whose guests are unknown, with the reason. */
  readonly unreadGuests: ReadonlyMap<string, string>;
  /** Why Cinder could not be compared with the cells. Null if it was, or nobody asked for that. */
  readonly unreadCinder: string | null;
}

export interface ReadingCounts {
  readonly providers: number;
  readonly consumers: number;
  readonly servers: number;
  readonly requests: number;
  readonly hosts: number;
  /** Number of hosts whose guests were reported by their agents or in these agents' journals. */
  readonly hostsAsked: number;
  /** Number of Cinder's attachments that were compared. Null if Cinder was not read. */
  readonly attachments: number | null;
}

/** Number of rows of each table that are read at a time, in all cells together, and the least number for one cell. */
const PAGE_ROWS = 5_000;
const CELL_PAGE_ROWS_MIN = 100;

/** A cell that is being read, and the guests of its hosts. */
interface OpenCell {
  readonly name: string;
  readonly reader: CellAuditReader;
  readonly running: SortedGuests;
  readonly copies: SortedGuests;
}

/**
 * Makes one reading of the whole cloud and checks it. A cell that cannot be read is named and left out. Throws when the API database cannot be read.
 * Each database is read from one snapshot, the cells' first, in slices by the UUIDs of the servers, the same slices from all of them. Memory: two
 * pages of each table, what is known about hosts, and the guests that agents report, but nothing for each server.
 */
export async function readCloud(cloud: AuditedCloud, patienceMs: number, pageRows = PAGE_ROWS): Promise<CloudReading> {
  const unread = new Map<string, string>();
  const opened: CellAuditReader[] = [];
  let api: ApiAuditReader | null = null;
  try {
    const cells = await openCells(cloud, { unread, opened, pageRows });
    const [apiReader, guests] = await Promise.all([
      ApiAuditReader.open(cloud.apiUrl, pageRows).then((reader) => {
        api = reader;
        return reader;
      }),
      cloud.readGuests?.(),
    ]);
    const dealt = guests === undefined ? { cells, unread: new Map() } : dealGuests(cells, guests, unread.size === 0);
    const walk = new SliceWalk(sortGuests(dealt.cells), apiReader, { patienceMs, unread });
    await walk.run();
    const walked = { ...walk.result(), unread, unreadGuests: dealt.unread };
    return withCinder(walked, cloud, patienceMs);
  } finally {
    await Promise.all([...opened, ...(api === null ? [] : [api as ApiAuditReader])].map((reader) => reader.close()));
  }
}

/** Adds what Cinder shows, if it is to be compared. */
async function withCinder(
  walked: Omit<CloudReading, "unreadCinder">,
  cloud: AuditedCloud,
  patienceMs: number,
): Promise<CloudReading> {
  if (cloud.blockStorage === undefined) return { ...walked, unreadCinder: null };
  const cinder = await readCinder(cloud.blockStorage, cloud, patienceMs);
  if (cinder.kind === "unread") return { ...walked, unreadCinder: cinder.reason };
  const { violations, attachments, unreadCells } = cinder;
  return {
    ...walked,
    // A cell may have answered everything else before.
    unread: new Map([...unreadCells, ...walked.unread]),
    violations: [...walked.violations, ...violations],
    counts: { ...walked.counts, attachments },
    unreadCinder: null,
  };
}

/** A cell whose snapshot is open, with the guests of its hosts. */
interface FramedCell {
  readonly reader: CellAuditReader;
  readonly running: GuestsByHost;
  readonly copies: GuestsByHost;
}

async function openCells(
  { cells }: AuditedCloud,
  {
    unread,
    opened,
    pageRows,
  }: { readonly unread: Map<string, string>; readonly opened: CellAuditReader[]; readonly pageRows: number },
): Promise<readonly FramedCell[]> {
  const rowsOfCell = Math.max(Math.min(CELL_PAGE_ROWS_MIN, pageRows), Math.floor(pageRows / Math.max(1, cells.length)));
  const framed = await Promise.all(
    cells.map(async (cell): Promise<FramedCell | null> => {
      try {
        const reader = await CellAuditReader.open(cell.name, cell.databaseUrl, rowsOfCell);
        opened.push(reader);
        const [running, copies] = await Promise.all([cell.runningGuests?.(), cell.copies?.()]);
        return { reader, running: running ?? new Map(), copies: copies ?? new Map() };
      } catch (error) {
        unread.set(cell.name, (error as Error).message);
        return null;
      }
    }),
  );
  return framed.filter((cell) => cell !== null);
}

function sortGuests(cells: readonly FramedCell[]): OpenCell[] {
  return cells.map(({ reader, running, copies }) => ({
    ...{ name: reader.frame.cell, reader },
    ...{ running: new SortedGuests(running), copies: new SortedGuests(copies) },
  }));
}

/** Walks through all databases in the order of the servers' UUIDs, and checks one slice after the other. */
class SliceWalk {
  readonly #api: ApiAuditReader;
  readonly #patienceMs: number;
  readonly #unread: Map<string, string>;
  readonly #violations: Violation[] = [];
  readonly #read = { consumers: 0, servers: 0, requests: 0 };
  #cells: readonly OpenCell[];

  constructor(
    cells: readonly OpenCell[],
    api: ApiAuditReader,
    { patienceMs, unread }: { readonly patienceMs: number; readonly unread: Map<string, string> },
  ) {
    this.#cells = cells;
    this.#api = api;
    this.#patienceMs = patienceMs;
    this.#unread = unread;
  }

  async run(): Promise<void> {
    await this.#eachCell(async ({ reader }) => {
      const { frame } = reader;
      this.#violations.push(...checkCapacity(frame), ...checkVolumes(frame));
      for await (const servers of reader.groupMembers())
        this.#violations.push(...checkGroups({ cell: frame.cell, moves: frame.moves, servers }));
    });
    for (let below: string | null = ""; below !== null; ) {
      await Promise.all([this.#eachCell(({ reader }) => reader.fill()), this.#api.fill()]);
      below = this.#leastBound();
      this.#check(below);
    }
  }

  result(): Pick<CloudReading, "violations" | "cells" | "counts" | "isEveryHostAsked"> {
    const cells = this.#cells;
    const total = (countOf: (cell: OpenCell) => number): number => cells.reduce((sum, cell) => sum + countOf(cell), 0);
    return {
      violations: this.#violations,
      cells: cells.map(({ name }) => name),
      counts: {
        providers: total(({ reader }) => reader.frame.providers.length),
        ...this.#read,
        hosts: total(({ reader }) => reader.frame.hosts.size),
        hostsAsked: total(({ running }) => running.hosts),
        attachments: null,
      },
      isEveryHostAsked: cells.every(({ reader, running }) => running.hosts >= reader.frame.hosts.size),
    };
  }

  /** Does this for all cells at the same time. A cell for which it fails is left out from then on, like a cell that could not be opened. */
  async #eachCell(work: (cell: OpenCell) => Promise<void>): Promise<void> {
    await Promise.all(
      this.#cells.map((cell) => work(cell).catch((error: Error) => this.#unread.set(cell.name, error.message))),
    );
    this.#cells = this.#cells.filter(({ name }) => !this.#unread.has(name));
  }

  #leastBound(): string | null {
    let least = this.#api.bound;
    for (const bound of this.#cells.flatMap(({ reader }) => reader.bounds))
      if (least === null || bound < least) least = bound;
    return least;
  }

  #check(below: string | null): void {
    const cells = this.#cells.map(({ reader, running, copies }): CellReading => {
      const { providers, ...shared } = reader.frame;
      const { consumers, ...ofServers } = reader.take(below);
      this.#read.consumers += consumers.length;
      this.#read.servers += ofServers.servers.length;
      const guests = { runningGuests: running.take(below), copies: copies.take(below) };
      return { ...shared, ...ofServers, ledger: { providers, consumers }, ...guests };
    });
    const requests = this.#api.take(below);
    this.#read.requests += requests.length;
    for (const violation of auditServers({ cells, api: { requests } }, this.#patienceMs))
      this.#violations.push(violation);
  }
}

/** Assigns each host's guests to the cell that has the host. A host that no cell or several cells have is reported as unread. */
function dealGuests(
  cells: readonly FramedCell[],
  reading: GuestReading,
  allCellsRead: boolean,
): { readonly cells: readonly FramedCell[]; readonly unread: ReadonlyMap<string, string> } {
  const unread = new Map(reading.unread);
  const dealt = cells.map(({ reader, running, copies }) => ({
    ...{ reader, running: new Map(running), copies: new Map(copies) },
  }));
  for (const [host, guests] of reading.hosts) {
    const owners = dealt.filter(({ reader }) => reader.frame.hosts.has(host));
    const [owner] = owners;
    if (owners.length === 1 && owner !== undefined) {
      owner.running.set(host, guests);
      owner.copies.set(host, reading.copies.get(host) ?? []);
    } else if (owners.length > 1) unread.set(`host ${host}`, "several cells have a host of this name");
    else if (allCellsRead) unread.set(`host ${host}`, "no cell has it");
  }
  return { cells: dealt, unread };
}
