import type { PortNoteStore } from "../../../core/stores/api/port-note-store.ts";
import type { AskedBy, Networking } from "../../../core/stores/networking.ts";
import { NetworkingError } from "../../../core/stores/networking-error.ts";
import type { KnownCall } from "../http/call.ts";
import { Fault } from "../http/fault.ts";

/** What servers with ports in Neutron need. */
export interface NeutronDeps {
  readonly networking: Networking;
  readonly notes: PortNoteStore;
  /** Whether the tokens of callers are Keystone's, so that Neutron is asked in their name. */
  readonly sendsTokens: boolean;
}

/** The author of work in this service's own name. */
export const OWN_NAME: AskedBy = { callerToken: null, requestId: null };

/** The author of questions, and of new ports, in the caller's name. For callers without a token of Keystone, this service asks in its own. */
export const askedBy = (
  { sendsTokens }: Pick<NeutronDeps, "sendsTokens">,
  { token, requestId }: KnownCall,
): AskedBy => ({
  callerToken: sendsTokens ? token : null,
  requestId,
});

/** Runs questions to Neutron. If it cannot answer, the call is refused: 503 if trying again can help, and 500 otherwise. */
export async function askNeutron<Value>(ask: () => Promise<Value>): Promise<Value> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof NetworkingError)) throw error;
    const again = error.code === "unreachable";
    const advice = again ? "try again later" : "the operator must see to it";
    throw new Fault(again ? 503 : 500, `${error.message}: ${advice}.`, { cause: error });
  }
}
