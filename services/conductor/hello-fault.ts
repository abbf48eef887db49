import type { Guest, Hello, HostState } from "../../proto/gen/berth/agent.ts";

/** Control characters are excluded. The database refuses U+0000, and the others would make log lines hard to read. */
const AGENT_ID = /^\P{Cc}{1,200}$/u;
const HOST = /^\P{Cc}{1,500}$/u;
const ID = /^\P{Cc}{1,300}$/u;
const CELL = /^\P{Cc}{1,200}$/u;
/** Empty if the host has not been compared with a database yet. */
const INCARNATION = /^\P{Cc}{0,200}$/u;
/**
 * Orders of a server are numbered from 1, or from the next number after RAISED_REVISION_MAX if an agent has lied. So no honest agent reaches this
 * number, and the database has room for more orders above it.
 */
const REVISION_MAX = 2_000_000_000;

/** More guests than a host has, or a cluster that is reported as one host. The database notes guests that it does not know, so a host could fill it without a limit. */
const GUESTS_MAX = 10_000;

/**
 * Returns the fault of a hello, as a text for its agent, or null. Values that the database cannot store must be refused here, because writing
 * them would be retried forever.
 */
export function helloFault({ agentId, hosts }: Hello): string | null {
  if (!AGENT_ID.test(agentId)) return `${shown(agentId)} is not an agent id`;
  for (const { host, guests, incarnation, cell } of hosts) {
    if (!HOST.test(host)) return `${shown(host)} is not the name of a host`;
    if (cell !== undefined && !CELL.test(cell)) return `host ${host}: ${shown(cell)} is not the name of a cell`;
    if (!INCARNATION.test(incarnation))
      return `host ${host}: ${shown(incarnation)} is not the incarnation of a database`;
    const fault = guestsFault(guests);
    if (fault !== null) return `host ${host}: ${fault}`;
  }
  return null;
}

/** Why a conductor of `cell` does not take the agent of a host that is in another cell, as a text for the agent. */
export function otherCell({ host, cell: other = "" }: HostState, cell: string): string {
  return `host ${host} is in cell ${other}, as its agent's journal says, and this is a conductor of cell ${cell}: give the agent the addresses of the conductors of ${other} (BERTH_CONDUCTORS); to move an empty host to ${cell}, remove it from ${other}, and start its agent with a new journal`;
}

/** Returns the fault of a list of guests, as a text for its agent, or null. */
export function guestsFault(guests: readonly Guest[]): string | null {
  if (guests.length > GUESTS_MAX) return `${guests.length} guests are listed; at most ${GUESTS_MAX} are allowed`;
  for (const { serverUuid, attemptId, revision, heardRevision } of guests) {
    if (!ID.test(serverUuid)) return `${shown(serverUuid)} is not the id of a server`;
    if (!ID.test(attemptId)) return `${shown(attemptId)} is not the id of an attempt`;
    if (!isRevision(revision))
      return `guest ${attemptId} has obeyed order ${revision}: the number of an order is at most ${REVISION_MAX}`;
    if (!isRevision(heardRevision))
      return `guest ${attemptId} was given order ${heardRevision}: the number of an order is at most ${REVISION_MAX}`;
  }
  return null;
}

const isRevision = (revision: number): boolean =>
  Number.isInteger(revision) && revision >= 0 && revision <= REVISION_MAX;
const shown = (text: string): string => JSON.stringify(text.slice(0, 200));
