import { runsNow } from "../../core/agent/runs-now.ts";
import { auditCloud } from "../../core/audit/audit-cloud.ts";
import type { CellReading } from "../../core/audit/facts.ts";
import type { CellStore } from "../../core/stores/cell/cell-store.ts";
import type { Migration } from "../../core/tasks/migration.ts";
import type { ModelHost } from "./model-host.ts";
import type { WorldBody } from "./operation-world-body.ts";

type Facts = Omit<CellReading, "cell" | "runningGuests" | "copies">;

/** Task states of ACTIVE servers whose guests must be destroyed. */
const UNWANTED = ["deleting", "shelving_offloading"];

/**
 * Guests that were destroyed since the last call and were the last copy. While an ACTIVE server has no other guest that has run, none that
 * has run may be destroyed, because a guest that never ran may be empty.
 */
export async function lostCopies(
  store: Pick<CellStore, "servers">,
  hosts: readonly ModelHost[],
): Promise<readonly string[]> {
  const lost: string[] = [];
  for (const { serverUuid, attemptId } of hosts.flatMap((host) => host.takeDestroyed())) {
    const [server] = await store.servers([serverUuid]);
    const isWanted = server?.status === "ACTIVE" && !UNWANTED.some((state) => state === server.taskState);
    const left = hosts.flatMap((host) => host.guests());
    if (isWanted && !left.some((guest) => guest.serverUuid === serverUuid && guest.hasRun))
      lost.push(`the last guest of ${serverUuid} that has run is destroyed: ${attemptId}`);
  }
  return lost;
}

/** Violations of the laws, while anything may be in progress. */
export function brokenLaws(facts: Facts, hosts: readonly ModelHost[]): readonly string[] {
  const copies = new Map(hosts.map((host) => [host.name, host.guests()]));
  const running = ({ state }: { readonly state: string }) => runsNow(state);
  const runningGuests = new Map([...copies].map(([host, guests]) => [host, guests.filter(running)]));
  const cell: CellReading = { cell: "c", ...facts, runningGuests, copies };
  const broken = auditCloud({ cells: [cell], api: null }, Number.POSITIVE_INFINITY);
  return broken.map((one) => `law ${one.law}: ${one.what} (${one.where}: ${one.proof})`);
}

/** Further faults, which count only when nothing is in progress. */
export async function wrongAtRest(
  body: Pick<WorldBody, "facts" | "store">,
  hosts: readonly ModelHost[],
  calledOff: readonly Migration[],
): Promise<readonly string[]> {
  const { openTasks, servers, ledger } = await body.facts();
  const wrong: string[] = await strayVolumes(
    body.store,
    servers.map(({ uuid }) => uuid),
    hosts,
  );
  if (openTasks.length > 0) wrong.push(`${openTasks.length} tasks never ended`);
  const waiting = servers.filter((server) => server.status === "VERIFY_RESIZE").length;
  const holders = ledger.consumers.filter((consumer) => consumer.type === "MIGRATION").length;
  if (holders > waiting) wrong.push(`${holders} migrations hold something, ${waiting} servers wait`);
  // A fenced source does not say whether it has handed over, so the destination may go on.
  const fenced = new Set(hosts.filter(({ wasFenced }) => wasFenced).map(({ name }) => name));
  for (const { uuid, status, sourceHost } of calledOff)
    if (status !== "cancelled" && status !== "error" && !fenced.has(sourceHost ?? ""))
      wrong.push(`migration ${uuid} was called off and is ${status}`);
  for (const server of servers) {
    const guests = hosts.flatMap((host) => host.guests()).filter((guest) => guest.serverUuid === server.uuid);
    const running = guests.filter((guest) => guest.state === "running").length;
    if (server.status === "ACTIVE" && running !== 1) wrong.push(`${server.uuid} is ACTIVE and runs ${running} times`);
    const most = server.status === "VERIFY_RESIZE" ? 2 : server.host === null ? 0 : 1;
    if (guests.length > most) wrong.push(`${server.uuid} is ${server.status} and has ${guests.length} guests`);
  }
  return wrong;
}

/** Volumes of guests whose server does not have them: they may be another server's by now. A guest that nobody starts again counts, too. */
async function strayVolumes(
  store: Pick<CellStore, "servers">,
  uuids: readonly string[],
  hosts: readonly ModelHost[],
): Promise<string[]> {
  const servers = new Map((await store.servers(uuids)).map((server) => [server.uuid, server]));
  return hosts.flatMap((host) =>
    host.guests().flatMap(({ serverUuid, attemptId }) => {
      const own = servers.get(serverUuid)?.spec.volumes.map(({ volumeId }) => volumeId) ?? [];
      const stray = [...host.volumesOf(attemptId)].filter((id) => !own.includes(id));
      return stray.map((id) => `the guest ${attemptId} has volume ${id} on ${host.name}, and its server does not`);
    }),
  );
}
