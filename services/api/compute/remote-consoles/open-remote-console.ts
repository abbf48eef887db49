import { randomUUID } from "node:crypto";
import { consoleKeyOf, consoleTokenHash } from "../../../../adapters/consoles/console-key.ts";
import type { ConsoleTokenStore, ConsoleTokenType } from "../../../../core/stores/api/console-token-store.ts";
import type { Clock } from "../../../../runtime/clock.ts";
import { ASKS_NOTHING } from "../../cells/console-question.ts";
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
  /** The address of the console proxy, as clients of serial consoles reach it. Null when there is none. */
  readonly serialConsoleBaseUrl: string | null;
  /** The address of the page with which browsers open graphical consoles. Null when there is none. */
  readonly novncproxyBaseUrl: string | null;
  /** How long a token is valid. */
  readonly consoleTokenTtlMs: number;
}

export interface RemoteConsoleDeps extends Pick<ServerDeps, "finder" | "cells"> {
  readonly consoleTokens: ConsoleTokenStore | null;
  readonly clock: Clock;
}

/**
 * Opens a console of a server for one client. Returns the URL at which the client reaches it, once, within the life of its token. Guests have
 * serial consoles and, where their host gives them a display, VNC; any other type is refused as by a Nova without it. Source: `get_serial_console` and
 * `get_vnc_console` of Nova's compute API and manager.
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
  const { consoleTokenTtlMs: lifetimeMs } = options;
  const served = servedConsole(protocol, options);
  // Nova names the protocol of the consoles that it has removed.
  if (served === null || deps.consoleTokens === null) throw unavailableType(protocol === "rdp" ? protocol : type);
  const { baseUrl, consoleType } = served;
  if (type !== consoleType) throw badRequest(`Invalid console type ${type}`);
  if (cell === undefined || host === null || attemptId === null) throw notReady(serverUuid);
  const [token, session] = [randomUUID(), randomUUID()];
  const graphical = consoleType === "novnc";
  const open = { session, key: consoleKeyOf(token, session), lifetimeMs, graphical };
  const answer = await cell.console({ ...ASKS_NOTHING, host, serverUuid, attemptId, open });
  switch (answer.$case) {
    case "opened":
    case "openedDisplay": {
      // A conductor of an older version opens the serial console although the display was asked for.
      if ((answer.$case === "openedDisplay") !== graphical) throw unavailableType(type);
      const nowMs = deps.clock.now();
      const place = { ...placeOf(answer.value), serverUuid, consoleType, session, expiresAtMs: nowMs + lifetimeMs };
      await deps.consoleTokens.putToken({ tokenSha256: consoleTokenHash(token), ...place }, nowMs);
      return urlOf(baseUrl, consoleType, token);
    }
    case "absent":
      throw notReady(serverUuid);
    case "unavailable":
      throw unavailableType(type);
    case "failed":
    case "output":
    case "pinning":
    case "diagnostics":
    case "interfacesSet":
    case "interfacesRefused":
    case "passwordChanged":
    case "passwordRefused":
      throw unavailable(`The console of instance ${serverUuid} cannot be opened now: its host does not answer.`);
    default:
      return answer satisfies never;
  }
}

/** The type of the consoles of a protocol, and where clients open them. Null when there are none. */
function servedConsole(
  protocol: ConsoleProtocol,
  { serialConsoleBaseUrl, novncproxyBaseUrl }: RemoteConsoleOptions,
): { readonly baseUrl: string; readonly consoleType: ConsoleTokenType } | null {
  if (protocol === "serial" && serialConsoleBaseUrl !== null)
    return { baseUrl: serialConsoleBaseUrl, consoleType: "serial" };
  if (protocol === "vnc" && novncproxyBaseUrl !== null) return { baseUrl: novncproxyBaseUrl, consoleType: "novnc" };
  return null;
}

/** noVNC hands the parameter `path` of its page on to the proxy. Source: `access_url` of Nova's ConsoleAuthToken. */
function urlOf(baseUrl: string, consoleType: ConsoleTokenType, token: string): string {
  const url = new URL(baseUrl);
  if (consoleType === "serial") url.searchParams.set("token", token);
  else url.searchParams.set("path", `${url.searchParams.get("path") ?? ""}?token=${token}`);
  return url.href;
}

const unavailableType = (type: string) => badRequest(`Unavailable console type ${type}.`);
const notReady = (uuid: string) => conflict(`Instance ${uuid} is not ready`);

const PORT_MAX = 65_535;

/** Reads an agent's address. Throws 503 for anything else, since the agent is not trusted to give one. */
function placeOf(address: string): { readonly host: string; readonly port: number } {
  const [, bracketed, plain, port] = /^(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9.-]+)):(\d{1,5})$/.exec(address) ?? [];
  const host = bracketed ?? plain;
  if (host === undefined || Number(port) > PORT_MAX) throw unavailable("The host gave no address of the console.");
  return { host, port: Number(port) };
}
