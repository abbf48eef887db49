import type { Caller, Task } from "../../proto/gen/berth/cell.ts";
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
  hostname: "",
} as const satisfies Partial<ServerSpec>;

/** A spec that names its server and says no more. */
export function bareSpec(serverUuid: string): ServerSpec {
  return {
    ...PLAIN_REQUEST,
    ...{ uuid: serverUuid, name: "", projectId: "", userId: "", flavor: undefined, imageRef: "" },
    ...{ metadata: {}, availabilityZone: "", requestId: "", createdAtMs: 0 },
    ...{ hints: [], portRequests: [], ports: [] },
  };
}

/** A task that deletes a server. It names the server and no more: for each delete it is written, logged and read again. */
export function deleteTaskOf(id: string, serverUuid: string, askedBy?: Caller): Task {
  return {
    ...{ id, server: bareSpec(serverUuid), work: { $case: "delete", value: {} } },
    ...(askedBy !== undefined && { askedBy }),
  };
}
