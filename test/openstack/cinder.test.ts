import { createHash, randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { asProject, connectorOf, newCinderVolume, OWN, volumesContract } from "../contract/volumes.contract.ts";
import { eventually } from "../rigs/eventually.ts";
import { SERVICE_TOKEN } from "../rigs/fake-neighbour.ts";
import { type OpenedCinder, openCinder } from "./open-cinder.ts";
import { hasCinder } from "./real-cinder.ts";

// Needs Debian's packages cinder-api, cinder-scheduler and cinder-volume: `npm run test:openstack` installs them.
describe.runIf(hasCinder)("a real Cinder", () => {
  let opened: OpenedCinder;
  beforeAll(async () => {
    opened = await openCinder();
  }, 900_000);
  afterAll(() => opened?.close());

  const finishCreating = async (id: string): Promise<void> => {
    const isMade = async () => (await opened.storage.volume(id, OWN))?.status !== "creating";
    await eventually("the volume is made", isMade, { everyMs: 200, withinMs: 60_000 });
  };
  async function newVolume(project: string): Promise<string> {
    const outcome = await opened.storage.createVolume(newCinderVolume(), asProject(project));
    if (outcome.kind !== "created") throw new Error(JSON.stringify(outcome));
    await finishCreating(outcome.volume.id);
    return outcome.volume.id;
  }

  volumesContract("Debian's Cinder", async () => ({
    ...{ storage: opened.storage, newVolume, finishCreating },
    forbidVolumes: async (project) => {
      await opened.cinder.call(SERVICE_TOKEN, "PUT", `os-quota-sets/${project}`, { quota_set: { volumes: 0 } });
    },
  }));

  test("connects a volume as a file below the directory where hosts have its export mounted", async () => {
    const volumeId = await newVolume("one");
    const connector = connectorOf("host-1");
    const outcome = await opened.storage.reserve({ volumeId, serverUuid: randomUUID(), connector }, OWN);
    if (outcome.kind !== "reserved") throw new Error(JSON.stringify(outcome));
    const dir = createHash("md5").update("storage:/volumes").digest("hex");
    expect(existsSync(join(opened.cinder.mounts, dir, String(outcome.attachment.connection?.name)))).toBe(true);
  });
});
