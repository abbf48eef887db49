import { ConductorsService } from "../../proto/gen/berth/agent.ts";

const identity = (frame: Buffer): Buffer => frame;

/** The generated service, except that GrpcStream encodes the frames, because it must know their size before it sends them. */
export const FRAMED_SERVICE = {
  connect: { ...ConductorsService.connect, requestSerialize: identity, responseSerialize: identity },
} as const;
