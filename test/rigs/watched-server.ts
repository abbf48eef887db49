import { existsSync } from "node:fs";
import { join } from "node:path";
import { type GuestRecord, readGuestRecord } from "../../adapters/qemu/guest-record.ts";
import type { ComputeApi } from "../e2e/client.ts";
import { eventually } from "./eventually.ts";
import { type GuestOnDisk, guestsOnDisk, type QemuGuestsDir, ticksSinceBoot } from "./qemu-guests.ts";

const PATIENT = { everyMs: 50, withinMs: 120_000, isLasting: true };
const LOOK_MS = 10;

interface ListedAction {
  readonly action: string;
  readonly message: string | null;
  readonly request_id: string;
}

/** A server as its clients see it, with the virtual machines that its hosts have of it. */
export class WatchedServer {
  readonly id: string;
  readonly #compute: ComputeApi;
  readonly #dir: QemuGuestsDir;

  constructor(compute: ComputeApi, dir: QemuGuestsDir, id: string) {
    this.#compute = compute;
    this.#dir = dir;
    this.id = id;
  }

  get guests(): readonly GuestOnDisk[] {
    return guestsOnDisk(this.#dir.instancesPath, this.id);
  }

  get records(): readonly GuestRecord[] {
    return this.guests.flatMap((guest) => readGuestRecord(guest.dir) ?? []);
  }

  /** The record of its only guest. Undefined if it has none or several. */
  get record(): GuestRecord | undefined {
    const [record, another] = this.records;
    return another === undefined ? record : undefined;
  }

  /** Whether one of its guests has a file of this name. */
  has(file: string): boolean {
    return this.guests.some((guest) => existsSync(join(guest.dir, file)));
  }

  guestAt(host: string): GuestOnDisk | undefined {
    return this.guests.find((guest) => guest.host === host);
  }

  /** The numbers that the guest on this host has printed since its last boot. */
  ticksAt(host: string): readonly number[] {
    return ticksSinceBoot(this.guestAt(host)?.ticks ?? []);
  }

  /** Throws if the guest on this host was booted since its first tick. */
  expectUnbroken(host: string): void {
    const all = this.guestAt(host)?.ticks ?? [];
    const since = ticksSinceBoot(all);
    if (since.length === 0 || since.length !== all.length)
      throw new Error(`the guest of ${this.id} on ${host} was booted again: it printed ${all.join(", ")}`);
  }

  /** Resolves when the guest on this host goes on. Rejects if it has lost or repeated a tick since its last boot. */
  async ticksOn(host: string): Promise<void> {
    const count = () => this.guestAt(host)?.ticks.length ?? 0;
    const before = count();
    await eventually(`further ticks of ${this.id} on ${host}`, () => count() > before, PATIENT);
    const ticks = this.ticksAt(host);
    const gap = ticks.findIndex((tick, index) => tick !== (ticks[0] ?? 0) + index);
    if (gap !== -1) throw new Error(`the guest of ${this.id} on ${host} printed ${ticks.join(", ")}`);
  }

  /** Remembers what all its guests print. `read` returns the numbers of every log, sorted. */
  watchTicks(): { read(): readonly number[]; stop(): void } {
    const longest = new Map<string, readonly number[]>();
    const look = () => {
      for (const { dir, ticks } of this.guests)
        if (ticks.length >= (longest.get(dir)?.length ?? 0)) longest.set(dir, ticks);
    };
    const timer = setInterval(look, LOOK_MS);
    return {
      read: () => {
        look();
        return [...longest.values()].flat().sort((one, other) => one - other);
      },
      stop: () => clearInterval(timer),
    };
  }

  /** Gives an action, again as long as the server's cell does not answer, as it may on a busy machine. */
  async act(action: string, value: unknown = null): Promise<void> {
    const give = async () => {
      const given = await this.#compute.call("POST", `/servers/${this.id}/action`, { [action]: value });
      return given.status !== 503 && given;
    };
    const answer = await eventually(`an answer to ${action} that is not 503`, give, PATIENT);
    if (answer.status >= 300) throw new Error(`${action}: ${answer.status} ${await answer.text()}`);
  }

  /** Asks for the end of its live migration. Resolves with the answer's status, which is 404 if there is no migration. */
  async abortMigration(): Promise<number> {
    const path = await this.#migration();
    return path === null ? 404 : (await this.#compute.call("DELETE", path)).status;
  }

  /** Asks for the completion of its live migration with a halted guest. Resolves with the answer's status, which is 404 if there is no migration. */
  async forceMigration(): Promise<number> {
    const path = await this.#migration();
    return path === null ? 404 : (await this.#compute.call("POST", `${path}/action`, { force_complete: null })).status;
  }

  /** The path of its live migration that is under way. */
  async #migration(): Promise<string | null> {
    const path = `/servers/${this.id}/migrations`;
    type Listed = { readonly migrations: readonly { readonly id: number }[] };
    const [running] = ((await (await this.#asked(path)).json()) as Listed).migrations;
    return running === undefined ? null : `${path}/${running.id}`;
  }

  async shown() {
    const shown = await this.#compute.show(this.id);
    const { status = null, "OS-EXT-STS:task_state": task = null } = shown ?? {};
    return { status, task, host: shown?.["OS-EXT-SRV-ATTR:host"] ?? "" };
  }

  /** Resolves with its host when it is in this status without a task. */
  async settled(status: string): Promise<string> {
    const isSettled = async () => {
      const shown = await this.shown();
      return shown.status === status && shown.task === null && shown;
    };
    return (await eventually(`server ${this.id} to be ${status}`, isSettled, PATIENT)).host;
  }

  /** Resolves when an action has ended: with this status, or with its failure. */
  async ended(action: string, status: string): Promise<{ readonly isDone: boolean; readonly status: string | null }> {
    const isEnded = async () => {
      const shown = await this.shown();
      if (shown.task !== null) return null;
      const isFailed = (await this.messageOf(action)) === "Error";
      return shown.status === status || isFailed ? { isDone: !isFailed, status: shown.status } : null;
    };
    return eventually(`the end of ${action} of ${this.id}`, isEnded, PATIENT);
  }

  /** What its latest action of this name says about its end: `Error`, or null for a success. */
  async messageOf(action: string): Promise<string | null> {
    return (await this.#latest(action))?.message ?? null;
  }

  /** Why its latest action of this name has failed. Null for one that has not. */
  async reasonOf(action: string): Promise<string | null> {
    const latest = await this.#latest(action);
    if (latest?.message !== "Error") return null;
    const path = `/servers/${this.id}/os-instance-actions/${latest.request_id}`;
    type Shown = { readonly instanceAction: { readonly events: readonly { readonly details: string | null }[] } };
    const { instanceAction } = (await (await this.#asked(path)).json()) as Shown;
    return instanceAction.events.map(({ details }) => details ?? "").find((details) => details !== "") ?? "";
  }

  async #latest(action: string): Promise<ListedAction | undefined> {
    const answer = await this.#asked(`/servers/${this.id}/os-instance-actions`);
    const { instanceActions } = (await answer.json()) as { readonly instanceActions: readonly ListedAction[] };
    return instanceActions.find((one) => one.action === action);
  }

  /** The answer to a question, asked again as long as the server's cell does not answer, as it may on a busy machine. */
  #asked(path: string): Promise<Response> {
    const ask = async () => {
      const answer = await this.#compute.call("GET", path);
      return answer.status !== 503 && answer;
    };
    return eventually(`an answer to ${path} that is not 503`, ask, PATIENT);
  }
}
