import { CINDER, CinderClient } from "../../adapters/openstack/cinder-client.ts";
import { withServiceLogin } from "../rigs/with-service-login.ts";
import { type RealCinder, startRealCinder } from "./real-cinder.ts";

export interface OpenedCinder {
  readonly cinder: RealCinder;
  readonly storage: CinderClient;
  close(): Promise<void>;
}

/** Starts a real Cinder, and opens a client of it with the login of a service. `more`: further lines of its configuration. */
export async function openCinder(more = ""): Promise<OpenedCinder> {
  const cinder = await startRealCinder(null, more);
  const client = withServiceLogin({ ...CINDER, url: cinder.url, timeoutMs: 60_000, triesMax: 1 });
  return {
    cinder,
    storage: new CinderClient(client),
    close: async () => {
      await client.close();
      await cinder.stop();
    },
  };
}
