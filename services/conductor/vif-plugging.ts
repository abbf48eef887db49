import { DEVICE_IDS_MAX, type Networking, type NeutronPort, OWN_NAME } from "../../core/stores/networking.ts";
import { NetworkingError } from "../../core/stores/networking-error.ts";
import type { ServerSpec } from "../../proto/gen/berth/shared.ts";
import { Batcher } from "../../runtime/batcher.ts";
import type { Clock } from "../../runtime/clock.ts";
import { failed, UNWANTED, type Undone } from "./patient-calls.ts";

export type PluggingOutcome = { readonly kind: "plugged" } | Undone;

const POLL_MS = 500;
const POLL_MS_MAX = 5_000;

/**
 * Waits until Neutron's agent has connected the interfaces of a prepared guest to their networks. Neutron reports this with the event `network-vif-plugged`,
 * and shows it in the port's own row: the status is ACTIVE, or ERROR where the event would say that it failed. The status is what counts here. So it makes
 * no difference whether the event comes early, twice or never, or whether another conductor goes on with the wait.
 *
 * All servers that wait are looked up by one question at a time. So however many wait, the calls that bind ports find a free connection.
 *
 * Source: `vif_plugging_timeout` and `vif_plugging_is_fatal` of Nova, and neutron/notifiers/nova.py.
 */
export class VifPlugging {
  readonly #networking: Networking | null;
  /** The ports of a server in Neutron, or null without Neutron. */
  readonly #looks: Batcher<string, readonly NeutronPort[]> | null;
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #isFatal: boolean;

  constructor(
    deps: { readonly networking: Networking | null; readonly clock: Clock },
    settings: { readonly vifPluggingTimeoutMs: number; readonly vifPluggingIsFatal: boolean },
  ) {
    const { networking } = deps;
    this.#networking = networking;
    this.#looks =
      networking === null
        ? null
        : new Batcher({ run: (uuids) => portsOf(networking, uuids), maxItems: DEVICE_IDS_MAX });
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

  async #wait(look: () => Promise<Status>, isWanted: () => boolean): Promise<PluggingOutcome> {
    const startedAtMs = this.#clock.monotonic();
    for (let pauseMs = POLL_MS; ; pauseMs = Math.min(2 * pauseMs, POLL_MS_MAX)) {
      const status = await look().catch((error: unknown): Status => {
        if (error instanceof NetworkingError) return { kind: "waiting", why: error.message };
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
