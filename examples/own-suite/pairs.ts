import type { FakeScript, Generator } from "berth/chaos";

/** The servers of a pair run on different hosts, as a database and its replica should. */
const SERVERS_PER_PAIR = 2;

/** An own generator: requests the two servers of each server group, one directly after the other. `fake` says how long a build takes. */
export function pairs(groups: readonly string[], fake: FakeScript = {}): Generator {
  const wanted = groups.flatMap((group) =>
    Array.from({ length: SERVERS_PER_PAIR }, () => ({ hints: { group }, fake })),
  );
  const next = wanted.values();
  return {
    next: () => {
      const { value: server, done } = next.next();
      return done === true ? null : { op: "create", server };
    },
  };
}
