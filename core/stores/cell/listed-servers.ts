import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import type { Server } from "../../tasks/server.ts";
import type { SpecToken } from "./spec-tokens.ts";

/** A place in the list of servers, which is ordered by the time of creation and then by UUID. */
export interface ListPosition {
  readonly uuid: string;
  readonly createdAtMs: number;
}

/**
 * The attributes by whose values a cell finds its servers: the flavor's id, the image's id, the user's id, the name of the key pair, what follows the
 * first 30 characters of the request's id (`req-` and a UUID), the status, unless it is BUILD or ACTIVE, and the host.
 */
export type IndexedAttribute = "flavor" | "image" | "user" | "key" | "reservation" | "status" | "host";

/** A value of an attribute. Of values longer than 1,024 bytes, a store may compare only these. */
export interface AttributeValueAsked {
  readonly attribute: IndexedAttribute;
  readonly value: string;
  /** Servers with one of these values are found, too. None by default. */
  readonly otherValues?: readonly string[];
  /** Servers without a host are found, too. Only for hosts. */
  readonly orNone?: boolean;
}

/** Asks for the different values of an attribute that contain a text. */
export interface ValuesQuery {
  readonly attribute: "key";
  readonly contains: string;
  /** How many different values are looked at. */
  readonly looksMax: number;
}

/** Selects servers by an attribute, newest first. */
export interface AttributeQuery extends AttributeValueAsked {
  /** Only servers that have a value of each of these, too. None by default. */
  readonly others?: readonly AttributeValueAsked[];
  /** Only servers whose names in the cell, which may be former ones, contain this text. */
  readonly nameContains?: string;
  /** Null for the servers of all projects. */
  readonly projectId: string | null;
  readonly oldestFirst: boolean;
  /** Only servers that follow in the list, or null for all. */
  readonly after: ListPosition | null;
  /** Most servers with one value that are looked at. Those of other projects and without the other values count, too. */
  readonly looksMax: number;
  /** Most servers that are returned. */
  readonly limit: number;
}

/** Some of the selected servers. The next ones follow `resumeAt`, which is null when there are no more. */
export interface AttributeStretch {
  readonly servers: readonly Server[];
  readonly resumeAt: ListPosition | null;
}

/** A part of a server by which lists are sorted. */
export type SketchPart = "status" | "host" | "updatedAt" | "launchedAt";

/** The fields of specs by which lists are sorted. */
export const SPEC_FIELDS = [
  ...(["uuid", "name", "projectId", "userId", "flavor", "imageRef", "availabilityZone", "requestId"] as const),
  ...(["imageProperties", "hostname", "description", "accessIpV4", "accessIpV6", "keyName"] as const),
  ...(["configDrive", "manualDisk", "launchIndex"] as const),
] satisfies readonly (keyof ServerSpec)[];
export type SpecField = (typeof SPEC_FIELDS)[number];

/** The place of a server, and the parts of it that were asked for. All fields of its spec that were not asked for have the values of an empty spec. */
export type ServerSketch = ListPosition &
  Partial<Pick<Server, "status" | "taskState" | "host" | "updatedAtMs" | "launchedAtMs" | "spec">>;

/** Selects all servers with a value of an attribute. */
export interface SketchQuery extends AttributeValueAsked {
  readonly attribute: Exclude<IndexedAttribute, "status">;
  /** Only servers that have a value of each of these, too. */
  readonly others: readonly AttributeValueAsked[];
  /** Null for the servers of all projects. */
  readonly projectId: string | null;
  /** Most servers with one of the values that are looked at. Those of other projects and without the other values count, too. */
  readonly looksMax: number;
  /** "status" includes the task state. */
  readonly parts: readonly SketchPart[];
  /** The fields of the spec. Sketches have no spec if there are none. */
  readonly specFields: readonly SpecField[];
}

/** Selects servers whose specs have one of these tokens. */
export interface TokenQuery {
  readonly tokens: readonly SpecToken[];
  /** Null for the servers of all projects. */
  readonly projectId: string | null;
  /** How many servers with one of the tokens are looked at. Those of other projects count, too. */
  readonly looksMax: number;
}

/** Compares two places of the list, newest first. */
export function newestFirst(one: ListPosition, other: ListPosition): number {
  return other.createdAtMs - one.createdAtMs || (one.uuid < other.uuid ? -1 : one.uuid > other.uuid ? 1 : 0);
}
