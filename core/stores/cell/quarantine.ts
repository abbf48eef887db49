/**
 * The treatment of guests that a comparison would destroy. A database that was restored to an earlier moment, or that lost
 * commits in a failover, does not know some servers that really exist. Its rows are not a reason to destroy the only copy of such a server (law
 * 6).
 */

/** A guest that must be destroyed according to its server's row, with what its agent knows. */
export interface DoomedGuest {
  readonly host: string;
  readonly serverUuid: string;
  readonly attemptId: string;
  readonly state: string;
  /** Revision of the latest order that the guest obeyed, or 0 when there was none. */
  readonly revision: number;
  /** The incarnation of the database with which the guest's host was last compared, or "" when there was none. */
  readonly incarnation: string;
  /** Its agent had no record of the guest, and found it at its driver. False by default. */
  readonly isFound?: boolean;
}

/**
 * `destroy`: no reason to keep the guest is known. `unknown`: the database has no such server. `quarantined`: the guest is kept until an
 * operator decides.
 */
export interface GuestVerdict {
  readonly kind: "destroy" | "unknown" | "quarantined";
  /** Why the guest is kept, when this call put it into quarantine. Otherwise null. */
  readonly reason: string | null;
}

/**
 * A server of which nobody knows any longer where it should run: the database was restored, and the guest at its home was halted by an order
 * that the database has forgotten. The order may have been part of a move.
 */
export interface UncertainServer {
  readonly serverUuid: string;
  readonly host: string;
  readonly attemptId: string;
  /** Revision of the forgotten order. */
  readonly revision: number;
  readonly fault: string;
}

/** An attempt of a server, whose guest runs or is to run. */
export interface ServerAttempt {
  readonly serverUuid: string;
  readonly attemptId: string;
}

/** A guest that is kept although the database does not want it. */
export interface QuarantinedGuest {
  readonly host: string;
  readonly serverUuid: string;
  readonly attemptId: string;
  readonly state: string;
  readonly reason: string;
  readonly foundAtMs: number;
  /** An operator has decided that the guest must be destroyed. */
  readonly condemned: boolean;
  /** The guest may really be one that the database has forgotten, so its server gets no second guest (`mayBeForgotten`). */
  readonly holds: boolean;
}

/** The records of the database about the server and attempt of a guest that is about to be destroyed. */
export interface KnownOfGuest {
  /** Null when there is no such server. */
  readonly revision: number | null;
  /** The database has the task of the guest's attempt, and the task has reached this attempt. */
  readonly isAttemptKnown: boolean;
  /** As far as the database knows, an agent may have been told to start the guest. */
  readonly isStartKnown: boolean;
  readonly incarnation: string;
  /** All guests of the host were compared with this incarnation before. */
  readonly wasCompared: boolean;
  /** According to the database, a guest of the server was ever to be on this host. */
  readonly wasThere: boolean;
}

/**
 * Whether a guest in quarantine may be one that the database has forgotten, and so may run beside another one of its server. Commits are lost only when the
 * incarnation changes, and the guests that a host has then are judged by its first comparison afterwards. A guest of a server that was never on the host,
 * and that the host lists only later, was ordered by nobody: its agent lies, or is broken. It is kept nevertheless, but it does not hold up its server.
 */
export function mayBeForgotten({ wasCompared, wasThere }: Pick<KnownOfGuest, "wasCompared" | "wasThere">): boolean {
  return !wasCompared || wasThere;
}

/**
 * How much younger than the loss of commits a server must be for a database to be sure that it has forgotten nothing about it. The times of servers are those of the apis' clocks, which may be off.
 */
export const LOSS_MARGIN_MS = 600_000;

const HAS_RUN: readonly string[] = ["running", "stopped", "paused", "suspended", "rescued"];

/** Why the guest must be kept: the database has lost commits, or there is a sign that it has, or the guest may be another cloud's. Null when there is no reason. */
export function quarantineReason(guest: DoomedGuest, known: KnownOfGuest): string | null {
  const reason = signOfLoss(guest, known);
  if (reason !== null) return mayBeForgotten(known) ? reason : `${reason}. ${INVENTED}`;
  return guest.isFound === true && known.revision === null ? FOUND : null;
}

const FOUND =
  "its agent found it at the hypervisor without a record of it, and the cell's database does not know its server. It may belong to another cloud " +
  "whose host has the same name and uses the same hypervisor or the same directory of guests: give one of the two hosts another name, and let nobody destroy the guest then";

const INVENTED =
  "But its host was compared with this database before, and the server was never there, so the server is not held up: find out whether the agent of " +
  "the host is broken or belongs to an attacker";

function signOfLoss(guest: DoomedGuest, known: KnownOfGuest): string | null {
  if (known.revision !== null && guest.revision > known.revision)
    return `it has obeyed order ${guest.revision} of its server, but the cell's database only knows orders up to ${known.revision}`;
  if (known.revision !== null && !known.isStartKnown && HAS_RUN.includes(guest.state))
    return "it has run, but the cell's database does not know that this attempt of its server was started";
  // An agent that has lost its journal cannot tell, so that the database's own record of the comparisons counts.
  const isUntold = guest.incarnation === "";
  const isOther = isUntold ? !known.wasCompared : guest.incarnation !== known.incarnation;
  if (!isOther || (known.revision !== null && known.isAttemptKnown)) return null;
  const what = known.revision === null ? "its server" : "this attempt of its server";
  const why = isUntold ? "was never compared with its host" : "was restored or failed over";
  return `the cell's database ${why}, and does not know ${what}`;
}

/**
 * The fault of a server that is not placed, because a guest of it is in quarantine: the guest would run beside the new one (law 4). A guest
 * that an operator has condemned no longer counts.
 */
export const GUEST_IN_QUARANTINE =
  "a guest of the server is in quarantine, because the database of its cell was restored or failed over, and may run there: an operator has to " +
  "decide about it (berth cell quarantine)";

/**
 * Why an uncertain server is not started, moved or rebuilt: another guest of it may run on a host that is away. The mark stays until an operator
 * sets the server to active, or the server is deleted.
 */
export const SERVER_UNCERTAIN =
  "the database of its cell was restored or failed over and has lost commits, so the server may run on another host: an operator has to look for " +
  "its other guests (berth cell quarantine) and then to set it to active (os-resetState)";

/** Why a host with a quarantined guest takes no new servers. The guest uses resources that the ledger does not know of. */
export const QUARANTINE_DISABLES = "a guest is in quarantine: see berth cell quarantine";

/** The conductors' part of the quarantine. Both implementations pass test/contract/quarantine. */
export interface QuarantineStore {
  /** Records that all guests that these hosts had were judged under this incarnation. */
  noteCompared(hosts: readonly { readonly host: string; readonly incarnation: string }[]): Promise<void>;
  /**
   * Identifies this state of the database. It changes when an operator declares that the database was restored, and with each failover (its
   * timeline).
   */
  incarnation(): Promise<string>;
  /** Puts the guests that must be kept into quarantine, and disables their hosts for new servers. Answers in the order of the guests. */
  judgeGuests(guests: readonly DoomedGuest[]): Promise<readonly GuestVerdict[]>;
  /**
   * Removes all guests of these hosts from the quarantine except the given attempts. The others are gone from the host, or at home again.
   */
  keepQuarantined(hosts: readonly { readonly host: string; readonly attemptIds: readonly string[] }[]): Promise<void>;
  /**
   * Raises the revisions of servers whose guests have obeyed higher orders, so that the next orders get higher numbers. Unknown servers are
   * ignored.
   */
  raiseRevisions(revisions: readonly { readonly serverUuid: string; readonly revision: number }[]): Promise<void>;
  /**
   * Puts these servers into ERROR with the fault, and raises their revisions to those orders, so that the guest obeys a start once an
   * operator has set the server to ACTIVE. Until then no operation that starts a guest begins (`SERVER_UNCERTAIN`). Servers are left alone unless they are ACTIVE with this guest at home, at rest, and know of no
   * such order. Answers, in the order of the servers, which were changed.
   */
  markUncertain(servers: readonly UncertainServer[]): Promise<readonly boolean[]>;
  /**
   * Whether another guest of the server than that of the attempt is in quarantine, and was not condemned. Answers in the order of the
   * attempts.
   */
  othersInQuarantine(attempts: readonly ServerAttempt[]): Promise<readonly boolean[]>;
}

/** The operators' part of the quarantine. */
export interface QuarantineAdmin {
  /** All quarantined guests, sorted by host and then by attempt. */
  quarantined(): Promise<readonly QuarantinedGuest[]>;
  /** Lets conductors destroy the quarantined guests of these servers, or all of them for null. Returns how many guests these are. */
  condemn(serverUuids: readonly string[] | null): Promise<number>;
  /** Records that the database was restored, so that every host is compared with care. Returns the new incarnation. */
  renewIncarnation(): Promise<string>;
}
