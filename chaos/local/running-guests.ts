import type { RunningGuest } from "../../core/audit/facts.ts";
import type { FakeGuest } from "../../services/compute-agent/fake-guest.ts";
import type { LocalAgent } from "./local-agent.ts";

/** The running guests on the hosts of all agents that answer. */
export function runningGuests(agents: readonly LocalAgent[]): Promise<ReadonlyMap<string, readonly RunningGuest[]>> {
  return guestsOf(agents, ({ running }) => running);
}

/** All guests, running or not, on the hosts of all agents that answer. */
export function copiesOf(agents: readonly LocalAgent[]): Promise<ReadonlyMap<string, readonly RunningGuest[]>> {
  return guestsOf(agents, () => true);
}

async function guestsOf(
  agents: readonly LocalAgent[],
  isMeant: (guest: FakeGuest) => boolean,
): Promise<ReadonlyMap<string, readonly RunningGuest[]>> {
  const found = new Map<string, RunningGuest[]>();
  for (const agent of agents) {
    const guests = await agent.guests();
    if (guests === null) continue;
    for (const host of agent.hosts) found.set(host, []);
    for (const guest of guests) if (isMeant(guest)) found.get(guest.host)?.push(guest);
  }
  return found;
}
