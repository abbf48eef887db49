import type { PluggedPort } from "../../core/stores/cell/plug-store.ts";
import { DEVICE_IDS_MAX, type Networking, type NeutronPort, OWN_NAME } from "../../core/stores/networking.ts";
import { NetworkingError } from "../../core/stores/networking-error.ts";
import { StoreError } from "../../core/stores/store-error.ts";
import type { ServerSpec } from "../../proto/gen/berth/shared.ts";
import { Batcher } from "../../runtime/batcher.ts";
import type { Clock } from "../../runtime/clock.ts";
import { failed, UNWANTED, type Undone } from "./patient-calls.ts";
import type { GuestPlace } from "./port-binder.ts";
import type { ConductorStore } from "./ports.ts";
import type { ConductorSettings } from "./settings.ts";

export type PluggingOutcome = { readonly kind: "plugged" } | Undone;

const POLL_MS = 500;
const POLL_MS_MAX = 5_000;
/** Most attempts that one question to the database is about. */
const ATTEMPTS_MAX = 500;

/**
 * Waits until Neutron's agent has connected the interfaces of a prepared guest to their networks. Neutron reports this with the event `network-vif-plugged`,
 * and shows it in the port's own row: the status is ACTIVE, or ERROR where the event would say that it failed. The status is what counts here. So it makes
 * no difference whether the event comes early, twice or never, or whether another conductor goes on with the wait.
 *
 * The ports of a live migration are bound to the source until the guest has moved, so they do not show whether the destination is connected. There the
 * event counts, which an api has written into the cell's database (`PlugStore`). The rows are read only while a migration waits. The event does not name a host, and
 * Neutron also sends it when it has bound the port to its source again because Berth has written the destination into the port's profile. So, as in Nova, the wait may
 * end before the destination is connected: it makes an interruption of the network after the switch shorter or rarer, and proves nothing.
 *
 * All servers that wait are looked up by one question at a time. So however many wait, the calls that bind ports find a free connection.
 *
 * Source: `vif_plugging_timeout`, `vif_plugging_is_fatal` and `live_migration_wait_for_vif_plug` of Nova, and neutron/notifiers/nova.py.
 */
export class VifPlugging {
  readonly #networking: Networking | null;
  /** The ports of a server in Neutron, or null without Neutron. */
  readonly #looks: Batcher<string, readonly NeutronPort[]> | null;
  /** The ports that Neutron has reported of the destination of a live migration. */
  readonly #reports: Batcher<string, readonly PluggedPort[]>;
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #isFatal: boolean;
  readonly #awaitsLive: boolean;

  constructor(
    deps: {
      readonly networking: Networking | null;
      readonly store: Pick<ConductorStore, "pluggedPorts">;
      readonly clock: Clock;
    },
    settings: Pick<ConductorSettings, "vifPluggingTimeoutMs" | "vifPluggingIsFatal" | "liveMigrationAwaitsVifs">,
  ) {
    const { networking } = deps;
    this.#networking = networking;
    this.#looks =
      networking === null
        ? null
        : new Batcher({ run: (uuids) => portsOf(networking, uuids), maxItems: DEVICE_IDS_MAX });
    this.#reports = new Batcher({ run: (ids) => deps.store.pluggedPorts(ids), maxItems: ATTEMPTS_MAX });
    this.#awaitsLive = settings.liveMigrationAwaitsVifs;
    this.#clock = deps.clock;
    this.#timeoutMs = settings.vifPluggingTimeoutMs;
    this.#isFatal = settings.vifPluggingIsFatal;
  }

  /**
   * Returns null at once if nothing is awaited: without a timeout, and for a server without ports in Neutron. The promise never rejects because of Neutron.
   * After the timeout the attempt fails, or the guest starts all the same if a missing network is not fatal.
   */
  wait(
    { uuid, ports }: Pick<ServerSpec, "uuid" | "ports">,
    host: string,
    isWanted: () => boolean,
  ): Promise<PluggingOutcome> | null {
    const ids = ports.filter(({ macAddress }) => macAddress !== undefined).map(({ portId }) => portId);
    const [networking, looks] = [this.#networking, this.#looks];
    if (networking === null || looks === null || this.#timeoutMs === 0 || ids.length === 0) return null;
    return this.#wait(async () => {
      let shown = await looks.submit(uuid);
      // Neutron may cut a long list (`pagination_max_limit`). So a port is missing only if the list of its server alone does not show it either.
      if (ids.some((id) => shown.every((port) => port.id !== id)))
        shown = await networking.ports({ deviceIds: [uuid] }, OWN_NAME);
      return statusOf(ids, new Map(shown.map((port) => [port.id, port])), host);
    }, isWanted);
  }

  /**
   * Waits until Neutron has reported that the ports are connected at the destination of a live migration. Returns null at once if this is not awaited. The
   * promise never rejects because of the database.
   */
  waitAhead(
    portIds: readonly string[],
    { host, attemptId }: GuestPlace,
    isWanted: () => boolean,
  ): Promise<PluggingOutcome> | null {
    if (!this.#awaitsLive || this.#timeoutMs === 0 || portIds.length === 0) return null;
    return this.#wait(async () => {
      const reported = await this.#reports.submit(attemptId);
      return statusAhead(portIds, new Map(reported.map((port) => [port.portId, port])), host, this.#isFatal);
    }, isWanted);
  }

  async #wait(look: () => Promise<Status>, isWanted: () => boolean): Promise<PluggingOutcome> {
    const startedAtMs = this.#clock.monotonic();
    for (let pauseMs = POLL_MS; ; pauseMs = Math.min(2 * pauseMs, POLL_MS_MAX)) {
      const status = await look().catch((error: unknown): Status => {
        if (error instanceof NetworkingError || error instanceof StoreError)
          return { kind: "waiting", why: error.message };
        throw error;
      });
      if (!isWanted()) return UNWANTED;
      if (status.kind === "plugged") return status;
      if (status.kind === "broken") return failed(status.why, false);
      const leftMs = startedAtMs + this.#timeoutMs - this.#clock.monotonic();
      if (leftMs <= 0 && !this.#isFatal) return { kind: "plugged" };
      if (leftMs <= 0)
        return failed(
          `The network was not ready within ${Math.round(this.#timeoutMs / 1_000)} s: ${status.why}`,
          false,
        );
      await new Promise<void>((resolve) => {
        this.#clock.setTimer(Math.min(pauseMs, leftMs), resolve);
      });
    }
  }
}

type Status =
  | { readonly kind: "plugged" }
  | { readonly kind: "waiting"; readonly why: string }
  | { readonly kind: "broken"; readonly why: string };

/** The ports of each of the servers. */
async function portsOf(networking: Networking, uuids: readonly string[]): Promise<readonly (readonly NeutronPort[])[]> {
  const byServer = Map.groupBy(await networking.ports({ deviceIds: uuids }, OWN_NAME), ({ deviceId }) => deviceId);
  return uuids.map((uuid) => byServer.get(uuid) ?? []);
}

/** A port that is not bound to the host any longer says nothing about the guest there. */
function statusOf(ids: readonly string[], found: ReadonlyMap<string, NeutronPort>, host: string): Status {
  let waiting: string | null = null;
  for (const id of ids) {
    const port = found.get(id);
    if (port === undefined) return { kind: "broken", why: `Port id ${id} could not be found.` };
    if (port.status === "ERROR" && port.host === host)
      return { kind: "broken", why: `Neutron could not connect port ${id} on ${host}: its status is ERROR.` };
    if (port.status === "ACTIVE" && port.host === host) continue;
    waiting ??= `port ${id} is ${port.status || "not bound"} on ${port.host || "no host"}`;
  }
  return waiting === null ? { kind: "plugged" } : { kind: "waiting", why: waiting };
}

/** A port that Neutron could not connect counts as connected where the guest runs without its network, too. */
function statusAhead(
  ids: readonly string[],
  reported: ReadonlyMap<string, PluggedPort>,
  host: string,
  isFatal: boolean,
): Status {
  const broken = ids.find((id) => reported.get(id)?.isFailed === true);
  if (broken !== undefined && isFatal)
    return { kind: "broken", why: `Neutron has reported that it could not connect port ${broken} on ${host}.` };
  const missing = ids.find((id) => !reported.has(id));
  if (missing === undefined) return { kind: "plugged" };
  return {
    kind: "waiting",
    why: `Neutron has not reported (network-vif-plugged) that port ${missing} is connected on ${host}. See that Neutron's agent there runs and that its section [nova] can log in at Berth, or set BERTH_LIVE_MIGRATION_WAIT_FOR_VIF_PLUG=false.`,
  };
}
