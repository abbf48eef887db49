/**
 * What a cell's database does with guests that a comparison would destroy. A database that was restored to an earlier moment, or failed over
 * and lost commits, does not know servers that really exist. Its word is no reason to destroy the only copy of one (law 6).
 */

/** A guest that is to be destroyed by what the database says of its server, with what its agent knows. */
export interface DoomedGuest {
  readonly host: string;
  readonly serverUuid: string;
  readonly attemptId: string;
  readonly state: string;
  /** Of the latest order that the guest has obeyed; 0: none. */
  readonly revision: number;
  /** With which incarnation of the database its host was last compared; "": with none. */
  readonly incarnation: string;
}

/** `destroy`: nothing speaks against it. `unknown`: the database knows no such server. `quarantined`: it is kept until an operator decides. */
export interface GuestVerdict {
  readonly kind: "destroy" | "unknown" | "quarantined";
  /** Why it is kept, when it was put into quarantine by this very call. */
  readonly reason: string | null;
}

/** A guest that is kept although the database does not want it. */
export interface QuarantinedGuest {
  readonly host: string;
  readonly serverUuid: string;
  readonly attemptId: string;
  readonly state: string;
  readonly reason: string;
  readonly foundAtMs: number;
  /** An operator has said that it is to be destroyed. */
  readonly condemned: boolean;
}

/** What the database knows of a doomed guest's server and attempt. */
export interface KnownOfGuest {
  /** Null: no such server. */
  readonly revision: number | null;
  /** The task of the guest's attempt is there, and has come as far as this attempt. */
  readonly isAttemptKnown: boolean;
  /** Somebody may have been told to start the guest, as far as the database knows. */
  readonly isStartKnown: boolean;
  readonly incarnation: string;
}

const HAS_RUN: readonly string[] = ["running", "stopped", "paused"];

/** Why the guest has to be kept: it proves, or may be a sign, that the database has forgotten something. Null: it does not. */
export function quarantineReason(guest: DoomedGuest, known: KnownOfGuest): string | null {
  if (known.revision !== null && guest.revision > known.revision)
    return `it has obeyed order ${guest.revision} of its server, and the cell's database knows of ${known.revision}`;
  if (known.revision !== null && !known.isStartKnown && HAS_RUN.includes(guest.state))
    return "it has run, and the cell's database does not know that this attempt of its server was ever started";
  const isOther = guest.incarnation !== "" && guest.incarnation !== known.incarnation;
  if (!isOther || (known.revision !== null && known.isAttemptKnown)) return null;
  const what = known.revision === null ? "its server" : "this attempt of its server";
  return `the cell's database was restored or failed over, and does not know ${what}`;
}

/** Why a host with a quarantined guest takes no new servers: the guest uses room that the ledger does not know of. */
export const QUARANTINE_DISABLES = "a guest is in quarantine: see berth cell quarantine";

/** What conductors do with the quarantine; both bodies pass test/contract/quarantine. */
export interface QuarantineStore {
  /** Names this state of the database: it changes when an operator says that it was restored, and with each failover (its timeline). */
  incarnation(): Promise<string>;
  /** Puts guests into quarantine that have to be kept, and disables their hosts for new servers. In the order of the guests. */
  judgeGuests(guests: readonly DoomedGuest[]): Promise<readonly GuestVerdict[]>;
  /** Each host has no other guests in quarantine than these attempts: the others are gone from it, or at home again. */
  keepQuarantined(hosts: readonly { readonly host: string; readonly attemptIds: readonly string[] }[]): Promise<void>;
  /** Guests have obeyed these orders of their servers, so the next ones need higher numbers. Unknown servers are passed over. */
  raiseRevisions(revisions: readonly { readonly serverUuid: string; readonly revision: number }[]): Promise<void>;
}

/** What operators do with it. */
export interface QuarantineAdmin {
  /** By host, then attempt. */
  quarantined(): Promise<readonly QuarantinedGuest[]>;
  /** Conductors may destroy these servers' quarantined guests; null: all. Returns how many they are. */
  condemn(serverUuids: readonly string[] | null): Promise<number>;
  /** The database was restored: every host is compared with care. Returns the new incarnation. */
  renewIncarnation(): Promise<string>;
}
