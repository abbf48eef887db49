import { systemClock } from "../../runtime/clock.ts";
import { KeystoneSession } from "./keystone-session.ts";
import { type LoginOptions, loginOf } from "./login-options.ts";
import { NeighbourClient, type NeighbourSettings } from "./neighbour-client.ts";
import type { NeighbourOptions } from "./neighbour-options.ts";

const TRIES_MAX = 3;
/** The limits of one request to Keystone. */
const LIMITS = { timeoutMs: 5_000, triesMax: TRIES_MAX };

/** The other OpenStack services of the cloud, which are called with one session of this service's user. */
export interface Neighbours {
  /** A client of one service. `url` is its endpoint; null takes it from the catalogue. */
  client(
    service: Pick<NeighbourSettings, "service" | "types" | "url" | "versionPath" | "provesService">,
  ): NeighbourClient;
  /** The address of Keystone's API v3. */
  readonly keystoneUrl: string;
  close(): Promise<void>;
}

/**
 * Opens the session. Throws `SettingsError` when Keystone's settings are incomplete, or when its tokens must be of the system (`system`) and the login is an
 * application credential, which belongs to a project. Sends no request yet.
 */
export function openNeighbours(
  options: LoginOptions & NeighbourOptions,
  { system = false }: { readonly system?: boolean } = {},
): Neighbours {
  const login = loginOf(options, "other OpenStack services are called with it", { system });
  const session = new KeystoneSession({ clock: systemClock }, { ...login, ...LIMITS }, { catalogue: true });
  const clients: NeighbourClient[] = [];
  return {
    keystoneUrl: session.apiUrl,
    client: (service) => {
      const settings = {
        ...service,
        interface: options.openstackInterface,
        region: options.openstackRegion,
        timeoutMs: options.openstackTimeout,
        triesMax: TRIES_MAX,
      };
      const client = new NeighbourClient({ session, clock: systemClock }, settings);
      clients.push(client);
      return client;
    },
    close: async () => {
      await Promise.all(clients.map((client) => client.close()));
      await session.close();
    },
  };
}
