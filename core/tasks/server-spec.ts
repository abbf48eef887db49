import type { Caller, Task } from "../../proto/gen/berth/cell.ts";
import type { ServerSpec } from "../../proto/gen/berth/shared.ts";

/** The spec fields of a request that asks for nothing but a flavor. */
export const PLAIN_REQUEST = {
  imageProperties: {},
  hints: [],
  forcedHost: "",
  requestedHost: "",
  group: undefined,
  portRequests: [],
  volumes: [],
  reservationId: "",
  ports: [],
  hostname: "",
  tags: [],
  accessIpV4: "",
  accessIpV6: "",
  keyName: "",
  publicKey: "",
  userData: "",
  configDrive: false,
  manualDisk: false,
  launchIndex: 0,
  files: [],
} as const satisfies Partial<ServerSpec>;

/** A spec that contains only the server's UUID. */
export function bareSpec(serverUuid: string): ServerSpec {
  return {
    ...PLAIN_REQUEST,
    ...{ uuid: serverUuid, name: "", projectId: "", userId: "", flavor: undefined, imageRef: "" },
    ...{ metadata: {}, availabilityZone: "", requestId: "", createdAtMs: 0 },
    ...{ hints: [], portRequests: [], ports: [], tags: [], files: [], volumes: [] },
  };
}

/** A task that deletes a server. It contains only the server's UUID, because each delete task is written, logged and read again. */
export function deleteTaskOf(id: string, serverUuid: string, askedBy?: Caller): Task {
  return {
    ...{ id, server: bareSpec(serverUuid), work: { $case: "delete", value: {} } },
    ...(askedBy !== undefined && { askedBy }),
  };
}
