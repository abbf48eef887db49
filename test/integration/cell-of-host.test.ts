import { afterEach, beforeEach, expect, test } from "vitest";
import type { MemoryDisk } from "../../services/compute-agent/memory-journal.ts";
import { eventually } from "../rigs/eventually.ts";
import { SmallCell } from "../rigs/small-cell.ts";

let cell: SmallCell;
beforeEach(async () => {
  cell = await new SmallCell().open();
});
afterEach(() => cell.close());

type Records = MemoryDisk["records"];

const compared = (disk: MemoryDisk) => disk.records.filter((record) => record.kind === "compared");
const comparedWith = (incarnation: string, other?: string): Records => [
  { kind: "compared", host: "host-0", incarnation, ...(other !== undefined && { cell: other }) },
];
const startAgent = (disk: MemoryDisk, conductors: readonly number[] = [1]) =>
  cell.startAgent({ id: "agent-0", hosts: [0], vcpus: 4, disk, conductors });

test.each([
  ["a new one", ""],
  ["one of an older version", "memory/0"],
])("the journal of an agent, %s, gets the cell of its host when the host is compared", async (_, incarnation) => {
  const disk: MemoryDisk = { records: incarnation === "" ? [] : comparedWith(incarnation) };
  await cell.startConductor(1);
  const first = await startAgent(disk);
  await cell.hostsUp(1);
  await eventually("the cell", () => compared(disk).some((record) => record.cell === "cell-1"));
  await first.agent.close();
  // The next process shortens the journal, and tells the conductor what it knows.
  await startAgent(disk);
  await cell.hostsUp(1);
  expect(compared(disk)).toMatchObject([{ host: "host-0", cell: "cell-1" }]);
});

test("a conductor refuses the agent of a host that is in another cell, and notes nothing of the host", async () => {
  const disk: MemoryDisk = { records: comparedWith("elsewhere/1", "cell-2") };
  await cell.startConductor(1);
  const closed: string[] = [];
  const stream = cell.network.dialer().dial("conductor-1");
  stream.onClose((reason) => void closed.push(reason));
  const host = { host: "host-0", guests: [], incarnation: "elsewhere/1", cell: "cell-2" };
  stream.send({ body: { $case: "hello", value: { agentId: "agent-0", hosts: [host] } } });
  await eventually("a refusal", () => closed.length === 1);
  expect(closed[0]).toMatch(/^host host-0 is in cell cell-2, .* this is a conductor of cell cell-1: give the agent /);
  await startAgent(disk);
  await cell.startAgent({ id: "agent-1", hosts: [1], vcpus: 4 });
  await cell.hostsUp(1);
  expect((await cell.store.hosts()).map(({ name }) => name)).toEqual(["host-1"]);
  expect(compared(disk)).toMatchObject([{ cell: "cell-2" }]);
});

test("an agent leaves a conductor of another cell that it reached before it knew its own", async () => {
  const disk: MemoryDisk = { records: [] };
  const foreign = cell.network.listen("conductor-9");
  const closed: string[] = [];
  let tell: (() => void) | undefined;
  foreign.onAgent((stream) => {
    stream.onMessages(() => {});
    stream.onClose((reason) => void closed.push(reason));
    stream.send({ body: { $case: "welcome", value: { conductorId: "foreign", heartbeatMs: 60_000 } } });
    tell ??= () => {
      const value = { host: "host-0", incarnation: "elsewhere/1", cell: "cell-2" };
      stream.send({ body: { $case: "compared", value } });
    };
  });
  await cell.startConductor(1);
  await startAgent(disk, [1, 9]);
  await cell.hostsUp(1);
  await eventually("the cell", () => compared(disk).some((record) => record.cell === "cell-1"));
  tell?.();
  await eventually("the end of the connection", () => closed.length > 0);
  expect(closed[0]).toBe("host host-0 is in cell cell-1, and this conductor is one of cell cell-2");
  expect(compared(disk).every((record) => record.cell === "cell-1")).toBe(true);
  await foreign.close();
});
