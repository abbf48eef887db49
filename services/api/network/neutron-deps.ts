import type { PortNoteStore } from "../../../core/stores/api/port-note-store.ts";
import type { FloatingIps } from "../../../core/stores/floating-ips.ts";
import type { Networking } from "../../../core/stores/networking.ts";

/** What servers with ports in Neutron need. */
export interface NeutronDeps {
  readonly networking: Networking;
  readonly floatingIps: FloatingIps;
  readonly notes: PortNoteStore;
  /** Whether the tokens of callers are Keystone's, so that Neutron is asked in their name. */
  readonly sendsTokens: boolean;
}
