import { expect } from "vitest";
import type { OperationKind } from "../../core/tasks/operation-kinds.ts";
import type { Stage, Target } from "../../core/tasks/operation-routes.ts";
import type { ServerGroupMembership } from "../../proto/gen/berth/shared.ts";
import { beginOperationOn } from "../rigs/begin-operation.ts";
import { OperationByHand } from "../rigs/operation-by-hand.ts";
import { dispatchOf, numbered } from "./cell-fixtures.ts";
import { type CellUnderTest, tenureOf } from "./cell-under-test.ts";

export const groupOf = (policy: string, number: number, maxServerPerHost = 0): ServerGroupMembership => ({
  uuid: numbered(0xe, number),
  policy,
  maxServerPerHost,
});

/** The id of server n's move. */
export const move = (number: number): string => numbered(0xd, number);

export const DISPATCHED = { kind: "dispatched", xid: expect.any(Number) };

/** Operations on servers of groups. Server n is built by task n and moved by move(n). */
export function groupedServers(cell: () => CellUnderTest) {
  const build = (server: number, host: number, of: ServerGroupMembership) =>
    dispatchOf({ server, task: server, hosts: [host], vcpus: 1, spec: { group: of } });
  const dispatch = async (server: number, host: number, of: ServerGroupMembership) =>
    (await cell().store.dispatch([build(server, host, of)]))[0];
  const boot = async (server: number, host: number, of: ServerGroupMembership): Promise<void> => {
    expect(await dispatch(server, host, of)).toEqual(DISPATCHED);
    await cell().store.commitActive([{ ...tenureOf(await cell().take(server)), selection: 0 }]);
  };
  const begin = async (server: number, kind: OperationKind, ...hosts: number[]) =>
    (await beginOperationOn(cell().store, { server, kind, hosts, taskId: move(server) })).outcome;
  /** Writes the transition from one stage of the operation to another. */
  const step = async (
    server: number,
    [from, to]: readonly [Stage, Exclude<Target, "another">],
    at: { readonly id?: string; readonly selection?: number; readonly next?: number } = {},
  ) => {
    const { id = move(server), selection = 0, next = selection } = at;
    expect(await cell().store.positions([id])).toMatchObject([{ stage: from, selection }]);
    return new OperationByHand(cell().store, id).goOn(to, next);
  };
  const along = async (server: number, ...stages: (Stage | "succeed" | "give-up")[]): Promise<void> => {
    for (let at = 1; at < stages.length; at += 1) {
      const pair = [stages[at - 1] as Stage, stages[at] as Exclude<Target, "another">] as const;
      expect(await step(server, pair)).toMatchObject({ kind: "committed" });
    }
  };
  return { build, dispatch, boot, begin, step, along };
}
