import { NeighbourFault } from "../../../core/stores/neighbour-fault.ts";
import type { AskedBy } from "../../../core/stores/networking.ts";
import type { KnownCall } from "./call.ts";
import { Fault } from "./fault.ts";

/**
 * The author of questions, and of what is made, in the caller's name. For callers without a token of Keystone (`sendsTokens` is false), this service asks in
 * its own.
 */
export const askedBy = (
  { sendsTokens }: { readonly sendsTokens: boolean },
  { token, requestId }: KnownCall,
): AskedBy => ({
  callerToken: sendsTokens ? token : null,
  requestId,
});

/** Runs questions to Neutron or Cinder. If it cannot answer, the call is refused: 503 if trying again can help, and 500 otherwise. */
export async function askNeighbour<Value>(ask: () => Promise<Value>): Promise<Value> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof NeighbourFault)) throw error;
    const again = error.code === "unreachable";
    const advice = again ? "try again later" : "the operator must see to it";
    throw new Fault(again ? 503 : 500, `${error.message}: ${advice}.`, { cause: error });
  }
}
