import { randomUUID } from "node:crypto";
import { beforeEach, expect, test } from "vitest";
import { MemoryBlockStorage } from "../../adapters/memory/memory-block-storage.ts";
import { systemClock } from "../../runtime/clock.ts";
import { serverId } from "../../test/contract/cell-fixtures.ts";
import { volumeOf } from "../../test/rigs/begin-operation.ts";
import { VolumeConnections } from "./volume-connections.ts";

const SERVER = serverId(1);
const tenure = { taskId: "t", serverUuid: SERVER, epoch: 1 };

let cinder: MemoryBlockStorage;
let connections: VolumeConnections;
let volumeId: string;
beforeEach(() => {
  cinder = new MemoryBlockStorage({ newId: randomUUID });
  connections = new VolumeConnections(
    { storage: cinder, store: { holdsTask: async () => true }, clock: systemClock },
    { volumeConnectTimeoutMs: 60_000 },
  );
  volumeId = cinder.putVolume({ projectId: "one" }).id;
});

/** How the host reaches the volume, once it is connected. */
async function connect(host: string): Promise<unknown> {
  const need = { host, tenure, isWanted: () => true };
  const outcome = await connections.connect(SERVER, [{ ...volumeOf(1), volumeId, inCinder: true }], need);
  if (outcome?.kind !== "connected") throw new Error(JSON.stringify(outcome));
  return JSON.parse(outcome.connections.get(volumeId) ?? "");
}

test("a raw volume whose content looks like qcow2 is given to its first host, to that host again, and to another one as raw", async () => {
  cinder.guessedFormats.set(volumeId, "qcow2");
  for (const host of ["host-0", "host-0", "host-1"])
    expect(await connect(host)).toMatchObject({ name: `volume-${volumeId}`, format: "raw" });
  expect(await cinder.attachments({ volumeId })).toHaveLength(2);
});
