/** A server as the Compute API shows it to the drain of a host. */
export interface DrainedServer {
  readonly status: string;
  readonly host: string | null;
  readonly taskState: string | null;
}

/** The status of a server whose cell does not answer. Its host is unknown then. */
export const SILENT = "UNKNOWN";

/** What is known of one server during a drain, apart from the server itself. */
export interface DrainKnowledge {
  /** The host that is drained. */
  readonly host: string;
  /** Whether running servers are migrated live. */
  readonly live: boolean;
  /** How the drain found the server: it lives on the host, or a move away from the host waits for its confirmation. */
  readonly foundAs: "resident" | "unconfirmed-migration" | "unconfirmed-resize";
  /** The last action that the api has accepted from this drain. */
  readonly accepted: "none" | "move" | "confirm";
  /** The api's refusal of an action, or null. */
  readonly refusal: string | null;
}

/** What the drain does next with a server. */
export type DrainStep =
  | { readonly kind: "wait" }
  | { readonly kind: "act"; readonly as: "move" | "confirm"; readonly body: Readonly<Record<string, unknown>> }
  /** The server has left the host. */
  | { readonly kind: "left" }
  /** The server was deleted. */
  | { readonly kind: "gone" }
  /** Somebody else moved the server, and the move waits for its confirmation. The next look at the host finds out which kind of move it was. */
  | { readonly kind: "look-again" }
  /** With `hasEvents`, the events of the server's last action tell more. */
  | { readonly kind: "stayed"; readonly why: string; readonly hasEvents: boolean };

/**
 * Decides the next step for one server of a host that is drained. Only moves that the drain itself requested, or cold migrations that an
 * interrupted drain left behind, are confirmed: a user's resize is the user's to confirm or to revert. `server` is null when it was deleted.
 */
export function nextDrainStep(server: DrainedServer | null, known: DrainKnowledge): DrainStep {
  if (server === null) return { kind: "gone" };
  if (server.status === SILENT) return { kind: "wait" };
  // The api refuses actions while another one is under way, and builds cannot be moved before they end.
  if (server.taskState !== null || server.status === "BUILD") return { kind: "wait" };
  if (server.host === known.host) return stepAtHome(server, known);
  if (server.status !== "VERIFY_RESIZE") return { kind: "left" };
  return stepBeforeConfirmation(server, known);
}

/** The statuses in which a server is moved with its memory. */
const OPEN_LIVE: readonly string[] = ["ACTIVE", "PAUSED"];

function stepAtHome({ status }: DrainedServer, { live, accepted, refusal }: DrainKnowledge): DrainStep {
  if (refusal !== null) return { kind: "stayed", why: refusal, hasEvents: false };
  if (accepted !== "none") return { kind: "stayed", why: `its move failed, and it is ${status}`, hasEvents: true };
  const isLive = live && OPEN_LIVE.includes(status);
  const body = isLive ? { "os-migrateLive": { host: null, block_migration: "auto" } } : { migrate: null };
  return { kind: "act", as: "move", body };
}

function stepBeforeConfirmation({ host }: DrainedServer, { foundAs, accepted, refusal }: DrainKnowledge): DrainStep {
  if (foundAs === "unconfirmed-resize") {
    const why = `it was resized to ${host}, and this host keeps its old disks until the resize is confirmed or reverted`;
    return { kind: "stayed", why, hasEvents: false };
  }
  const why = `it was moved to ${host}, but the move could not be confirmed`;
  if (accepted === "confirm") return { kind: "stayed", why, hasEvents: true };
  if (foundAs === "resident" && accepted === "none") return { kind: "look-again" };
  if (refusal !== null) return { kind: "stayed", why: `${why}: ${refusal}`, hasEvents: false };
  return { kind: "act", as: "confirm", body: { confirmResize: null } };
}
