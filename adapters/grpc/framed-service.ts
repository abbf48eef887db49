import { ConductorsService } from "../../proto/gen/berth/agent.ts";
import { readAgentFrame } from "./read-agent-frame.ts";

const identity = (frame: Buffer): Buffer => frame;

/**
 * The generated service, except that GrpcStream encodes the frames, because it must know their size before it sends them, and that frames of
 * agents are bounded while they are decoded.
 */
export const FRAMED_SERVICE = {
  connect: {
    ...ConductorsService.connect,
    ...{ requestSerialize: identity, requestDeserialize: readAgentFrame, responseSerialize: identity },
  },
} as const;
