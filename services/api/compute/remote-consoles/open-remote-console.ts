import { randomUUID } from "node:crypto";
import { consoleKeyOf, consoleTokenHash } from "../../../../adapters/consoles/console-key.ts";
import type { ConsoleTokenStore } from "../../../../core/stores/api/console-token-store.ts";
import type { Clock } from "../../../../runtime/clock.ts";
import type { KnownCall } from "../../http/call.ts";
import { badRequest, conflict, unavailable } from "../../http/fault.ts";
import { findServer } from "../servers/require-state.ts";
import type { ServerDeps } from "../servers/server-routes.ts";

/** The types of consoles by protocol. Source: the schema `remote_consoles` of Nova. */
export const CONSOLE_TYPES = {
  vnc: ["novnc", "xvpvnc"],
  spice: ["spice-html5"],
  rdp: ["rdp-html5"],
  serial: ["serial"],
  mks: ["webmks"],
} as const;
/** A type of SPICE consoles that only the newer request for a remote console has. */
export const SPICE_DIRECT = "spice-direct";
export type ConsoleProtocol = keyof typeof CONSOLE_TYPES;

export interface RemoteConsoleOptions {
  /** The address of the console proxy, as clients reach it. Null when there is none. */
  readonly serialConsoleBaseUrl: string | null;
  /** How long a token is valid. */
  readonly consoleTokenTtlMs: number;
}

export interface RemoteConsoleDeps extends Pick<ServerDeps, "finder" | "cells"> {
  readonly consoleTokens: ConsoleTokenStore | null;
  readonly clock: Clock;
}

/**
 * Opens the console of a server for one client. Returns the URL at which the client reaches it, once, within the life of its token. Guests have
 * serial consoles only; any other type is refused as by a Nova without it. Source: `get_serial_console` of Nova's compute API and manager.
 */
export async function openRemoteConsole(
  deps: RemoteConsoleDeps,
  call: KnownCall,
  asked: { readonly id: string; readonly protocol: ConsoleProtocol; readonly type: string },
  options: RemoteConsoleOptions,
): Promise<string> {
  const { protocol, type } = asked;
  const { record, known } = await findServer(deps, call, asked.id);
  const cell = record.cell === null ? undefined : deps.cells.get(record.cell);
  if (known.unreachable) throw unavailable(`Cell ${record.cell}, where the server lives, does not answer.`);
  const { host, attemptId, uuid: serverUuid } = known.server;
  const types: readonly string[] = CONSOLE_TYPES[protocol];
  const isDirect = protocol === "spice" && type === SPICE_DIRECT;
  if (!types.includes(type) && !isDirect) throw badRequest(`Invalid console type ${type}`);
  const { serialConsoleBaseUrl: baseUrl, consoleTokenTtlMs: lifetimeMs } = options;
  if (protocol !== "serial" || baseUrl === null || deps.consoleTokens === null) throw unavailableType(type);
  if (cell === undefined || host === null || attemptId === null) throw notReady(serverUuid);
  const [token, session] = [randomUUID(), randomUUID()];
  const open = { session, key: consoleKeyOf(token, session), lifetimeMs };
  const answer = await cell.console({ host, serverUuid, attemptId, bytesMax: 0, open });
  switch (answer.$case) {
    case "opened": {
      const nowMs = deps.clock.now();
      const place = { ...placeOf(answer.value), serverUuid, session, expiresAtMs: nowMs + lifetimeMs };
      await deps.consoleTokens.putToken({ tokenSha256: consoleTokenHash(token), ...place }, nowMs);
      const url = new URL(baseUrl);
      url.searchParams.set("token", token);
      return url.href;
    }
    case "absent":
      throw notReady(serverUuid);
    case "unavailable":
      throw unavailableType(type);
    case "failed":
    case "output":
      throw unavailable(`The console of instance ${serverUuid} cannot be opened now: its host does not answer.`);
    default:
      return answer satisfies never;
  }
}

const unavailableType = (type: string) => badRequest(`Unavailable console type ${type}.`);
const notReady = (uuid: string) => conflict(`Instance ${uuid} is not ready`);

/** Reads an agent's address. Throws 503 for anything else, since the agent is not trusted to give one. */
function placeOf(address: string): { readonly host: string; readonly port: number } {
  const [, host = "", port = ""] = /^(?:\[([0-9a-fA-F:.]+)\]|[A-Za-z0-9.-]+):(\d{1,5})$/.exec(address) ?? [];
  const name = host === "" ? address.slice(0, -port.length - 1) : host;
  if (port === "" || name === "") throw unavailable("The host gave no address of the console.");
  return { host: name, port: Number(port) };
}
