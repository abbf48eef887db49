import { AgentFrame } from "../../proto/gen/berth/agent.ts";
import { decodeBounded } from "../../runtime/decode-bounded.ts";

/** A frame of any size may have so many tags and lengths. A provider tree of the greatest accepted size has fewer. */
const NUMBERS_FREE = 300_000;
/** A guest, of which large frames consist, has a tag or a length in every seven bytes or so. */
const BYTES_PER_NUMBER = 6;

/**
 * Decodes what an agent has sent. Throws when the bytes are no frame, and when they consist of more and smaller parts than any agent's
 * messages: one frame of an agent could otherwise take the conductor gigabytes and half a minute, in which no other agent is heard.
 */
export function readAgentFrame(bytes: Buffer): AgentFrame {
  return decodeBounded(AgentFrame, bytes, NUMBERS_FREE + bytes.length / BYTES_PER_NUMBER);
}
