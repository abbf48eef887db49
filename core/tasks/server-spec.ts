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
  diskImageRef: "",
  trustedCerts: [],
} as const satisfies Partial<ServerSpec>;

/** A spec that contains only the server's UUID. */
export function bareSpec(serverUuid: string): ServerSpec {
  return {
    ...PLAIN_REQUEST,
    ...{ uuid: serverUuid, name: "", projectId: "", userId: "", flavor: undefined, imageRef: "" },
    ...{ metadata: {}, availabilityZone: "", requestId: "", createdAtMs: 0 },
    ...{ hints: [], portRequests: [], ports: [], tags: [], files: [], volumes: [], trustedCerts: [] },
  };
}

/** Properties that describe the file of the image that `imageRef` names, and no copy of a disk that was made of it. */
export const PROPERTIES_OF_FILE: ReadonlySet<string> = new Set(["disk_format", "os_hash_algo", "os_hash_value"]);

/** The image of which the server's local disk is made: the one that the server was requested with, or the copy from when it was shelved. */
export function diskImageOf(spec: ServerSpec): Pick<ServerSpec, "imageRef" | "imageProperties"> {
  const { imageRef, imageProperties, diskImageRef } = spec;
  if (diskImageRef === "") return { imageRef, imageProperties };
  const kept = Object.entries(imageProperties).filter(([key]) => !PROPERTIES_OF_FILE.has(key));
  return { imageRef: diskImageRef, imageProperties: Object.fromEntries(kept) };
}

/** A task that deletes a server. It contains only the server's UUID, because each delete task is written, logged and read again. */
export function deleteTaskOf(id: string, serverUuid: string, askedBy?: Caller): Task {
  return {
    ...{ id, server: bareSpec(serverUuid), work: { $case: "delete", value: {} } },
    ...(askedBy !== undefined && { askedBy }),
  };
}
