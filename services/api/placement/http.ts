import type { TokenIdentity } from "../identity/token-identity.ts";
import type { Microversion } from "./microversion.ts";

/** A request to the Placement application, independent of any framework so that it can be mounted anywhere. */
export interface PlacementRequest {
  readonly method: string;
  /** Path below the mount point, not decoded; "" or "/" is the root. */
  readonly path: string;
  /** The path where the application is mounted ("" or "/placement"). Links begin with it. */
  readonly mount: string;
  /** Scheme and host as the client wrote them: a `location` begins with it. */
  readonly origin: string;
  /** Query string without the question mark. */
  readonly query: string;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: Uint8Array;
  readonly requestId: string;
}

export interface PlacementResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array;
  /** Called when the body is no longer read, whether it was sent or not. */
  readonly sent?: (() => void) | undefined;
}

/** The argument of a handler: the request after it was read and authorized. */
export interface PlacementCall {
  readonly request: PlacementRequest;
  readonly version: Microversion;
  readonly identity: TokenIdentity;
  /** Parts of the path by their name in the route. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  /** The parsed body, or undefined where the route takes none. The first access throws 400 for invalid JSON. */
  readonly json: unknown;
}

/** The result of a handler. The application adds the headers that are common to all answers. */
export interface Answer {
  readonly status: number;
  readonly json?: unknown;
  /** A body that is JSON already. */
  readonly bytes?: Uint8Array;
  /** Called when `bytes` is no longer read. */
  readonly sent?: () => void;
  readonly location?: string;
  /** Milliseconds since the epoch, sent from 1.15 on as `last-modified`. Null for no headers about caching. */
  readonly lastModifiedMs: number | null;
  /** True when a search stopped at its limit on work and the answer may be incomplete. A header tells the client. */
  readonly boundReached?: boolean;
}

export const json = (value: unknown, lastModifiedMs: number, status = 200): Answer => ({
  status,
  json: value,
  lastModifiedMs,
});
export const noContent: Answer = { status: 204, lastModifiedMs: null };
