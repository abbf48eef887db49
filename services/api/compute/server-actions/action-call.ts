import type { ConsoleTokenStore } from "../../../../core/stores/api/console-token-store.ts";
import type { BlockStorage } from "../../../../core/stores/block-storage.ts";
import type { ServerSpec } from "../../../../proto/gen/berth/shared.ts";
import type { KnownCall } from "../../http/call.ts";
import type { ImageRule } from "../../image/image-rule.ts";
import type { ResizeSettler } from "../quotas/resize-settler.ts";
import type { RemoteConsoleOptions } from "../remote-consoles/open-remote-console.ts";
import type { ServerDeps } from "../servers/server-routes.ts";
import type { ActionBody } from "./action-body.ts";
import type { MoveAcceptor } from "./move-acceptor.ts";

/** Cinder as actions use it. */
export interface CinderAccess {
  readonly storage: Pick<BlockStorage, "createSnapshot" | "snapshot" | "snapshotsOf" | "removeSnapshot">;
  /** The tokens of callers are Keystone's, so that Cinder is asked in their name. */
  readonly sendsTokens: boolean;
}

export interface ActionDeps extends ServerDeps {
  /** Null when this process moves no servers. */
  readonly mover: MoveAcceptor | null;
  /** Null where resizes are not charged. */
  readonly resizes: ResizeSettler | null;
  /** Null when this process opens no consoles. */
  readonly consoleTokens: ConsoleTokenStore | null;
  /** Null where no server has volumes of Cinder. */
  readonly cinder: CinderAccess | null;
}

export interface ActionOptions extends RemoteConsoleOptions {
  readonly imageRule: ImageRule;
  /** Null for no limit. */
  readonly imagesPerProjectMax: number | null;
  readonly resizeToSameHost: boolean;
  readonly evacuateUnfenced: boolean;
  readonly shelvedOffloadTime: number;
  readonly instancePasswords: boolean;
}

/** One call of an action. */
export interface ActionCall {
  readonly id: string;
  readonly call: KnownCall;
  readonly carrier: Readonly<Record<string, string>>;
  readonly body: ActionBody;
  readonly action: string;
}

/** The answer to an action. With `server`, its body shows the changed server. */
export interface ActionResult {
  readonly status: 200 | 202 | 204;
  /** The whole body of the answer, if it is none of the bodies that `shows` names. */
  readonly body?: object;
  readonly shows?: "server" | "password";
  /** The image that the action makes. */
  readonly imageId?: string;
  /** The password that the call gave, which the answer repeats. */
  readonly givenPassword?: string | undefined;
  /** Returns the server's spec after the action. */
  readonly after?: (before: ServerSpec) => ServerSpec;
}

/** Runs one call of an action. Throws a fault for a call that is refused. */
export type RunAction = (deps: ActionDeps, one: ActionCall, options: ActionOptions) => Promise<ActionResult>;
