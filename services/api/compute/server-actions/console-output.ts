import { ASKS_NOTHING } from "../../cells/console-question.ts";
import type { KnownCall } from "../../http/call.ts";
import { conflict, invalidField, notFound, unavailable } from "../../http/fault.ts";
import { findServer } from "../servers/require-state.ts";
import type { ServerDeps } from "../servers/server-routes.ts";
import type { ActionBody } from "./action-body.ts";

/** As much of a console as Nova's libvirt driver reads (`MAX_CONSOLE_BYTES`). */
const BYTES_MAX = 102_400;

/** Reads `length`, the number of lines. Null means all lines that are kept. */
export function readConsoleLength(body: ActionBody): number | null {
  const length = body.refuseOthers("length").raw("length");
  if (length === undefined || length === null) return null;
  const isNumber = typeof length === "number" ? Number.isInteger(length) : typeof length === "string";
  if (!isNumber) throw invalidField("length", length, `${String(length)} is not of type 'integer', 'string', 'null'`);
  if (!/^-?[0-9]+$/.test(String(length)))
    throw invalidField("length", length, `'${String(length)}' does not match '^-?[0-9]+$'`);
  const lines = Number(length);
  if (lines < -1) throw invalidField("length", length, `${lines} is less than the minimum of -1`);
  return lines === -1 ? null : lines;
}

/**
 * Reads the last lines of a server's console from its host. Works in every state and during operations, as in Nova, which only asks for a host.
 * Source: `get_console_output` of Nova's compute API and manager.
 */
export async function readConsoleOutput(
  deps: Pick<ServerDeps, "finder" | "cells">,
  call: KnownCall,
  { id, lines }: { readonly id: string; readonly lines: number | null },
): Promise<string> {
  const { record, known } = await findServer(deps, call, id);
  const cell = record.cell === null ? undefined : deps.cells.get(record.cell);
  if (known.unreachable) throw unavailable(`Cell ${record.cell}, where the server lives, does not answer.`);
  const { host, attemptId, uuid } = known.server;
  if (cell === undefined || host === null) throw conflict(`Instance ${uuid} is not ready`);
  const none = "Guest does not have a console available.";
  if (attemptId === null) throw notFound(none);
  const answer = await cell.console({ ...ASKS_NOTHING, host, serverUuid: uuid, attemptId, bytesMax: BYTES_MAX });
  switch (answer.$case) {
    case "output":
      return lastLines(new TextDecoder().decode(answer.value), lines);
    case "absent":
      throw notFound(none);
    case "failed":
    case "opened":
    case "openedDisplay":
    case "unavailable":
    case "pinning":
    case "diagnostics":
    case "interfacesSet":
    case "interfacesRefused":
    case "passwordChanged":
    case "passwordRefused":
      throw unavailable(`The console of instance ${uuid} cannot be read now: its host does not answer.`);
    default:
      return answer satisfies never;
  }
}

/** Counts lines as Nova does: the empty text after a last line break is a line, too. Removes the characters that Nova removes. */
function lastLines(text: string, lines: number | null): string {
  const shown = lines === null ? text : lines === 0 ? "" : text.split("\n").slice(-lines).join("\n");
  return Array.from(shown)
    .filter((character) => character >= " " || character === "\n" || character === "\t")
    .join("");
}
