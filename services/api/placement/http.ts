import type { TokenIdentity } from "../identity/token-identity.ts";
import type { Microversion } from "./microversion.ts";

/** A request as the Placement application sees it: no framework, so that it can be mounted anywhere. */
export interface PlacementRequest {
  readonly method: string;
  /** Path below the mount point, not decoded; "" or "/" is the root. */
  readonly path: string;
  /** Where the application is mounted ("" or "/placement"): links begin with it. */
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
  /** To be called when the body is not read any more, sent or not. */
  readonly sent?: (() => void) | undefined;
}

/** What a handler is given: the request, read and admitted. */
export interface PlacementCall {
  readonly request: PlacementRequest;
  readonly version: Microversion;
  readonly identity: TokenIdentity;
  /** Parts of the path by their name in the route. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  /** Parsed body; undefined where the route takes none. The first look throws 400 for what is no JSON. */
  readonly json: unknown;
}

/** What a handler answers; the application adds what is common to all. */
export interface Answer {
  readonly status: number;
  readonly json?: unknown;
  /** A body that is JSON already. */
  readonly bytes?: Uint8Array;
  /** To be called when those bytes are not read any more. */
  readonly sent?: () => void;
  readonly location?: string;
  /** Milliseconds since the epoch; from 1.15 on it becomes `last-modified`. Null: say nothing of caching. */
  readonly lastModifiedMs: number | null;
  /** A search gave up at its bound on work: the answer may lack something. It says so in a header. */
  readonly boundReached?: boolean;
}

export const json = (value: unknown, lastModifiedMs: number, status = 200): Answer => ({
  status,
  json: value,
  lastModifiedMs,
});
export const noContent: Answer = { status: 204, lastModifiedMs: null };
