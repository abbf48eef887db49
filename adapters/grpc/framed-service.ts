import { ConductorsService } from "../../proto/gen/berth/agent.ts";

const identity = (frame: Buffer): Buffer => frame;

/** The generated service, but frames are encoded by GrpcStream, which has to know their size before it sends them. */
export const FRAMED_SERVICE = {
  connect: { ...ConductorsService.connect, requestSerialize: identity, responseSerialize: identity },
} as const;
