import type { ServerSpec } from "../../proto/gen/berth/shared.ts";

/** What a spec says of its server when a call asks for nothing but a flavor: no group, hints, ports or named host. */
export const PLAIN_REQUEST = {
  imageProperties: {},
  hints: [],
  forcedHost: "",
  requestedHost: "",
  group: undefined,
  portRequests: [],
  reservationId: "",
  ports: [],
} as const satisfies Partial<ServerSpec>;
