import { rmSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { NANO_IMAGE_ID } from "../../adapters/qemu/nano-image.ts";
import { findRunningQemu } from "../../adapters/qemu/running-qemu.ts";
import { eventually } from "../rigs/eventually.ts";
import { guestsOnDisk, killQemu, whyNoQemu } from "../rigs/qemu-guests.ts";
import type { E2eCell } from "./cell.ts";
import type { Cloud } from "./cloud.ts";
import { useGuestCloud } from "./guest-cloud.ts";

const PATIENT = { everyMs: 30, withinMs: 60_000 };
const skipped = whyNoQemu();

describe.skipIf(skipped !== null)(`lost guests${skipped === null ? "" : ` (skipped: ${skipped})`}`, () => {
  let cloud: Cloud;
  let cell: E2eCell;
  let flavor: string;
  let instances: string;

  useGuestCloud({ agents: 1, isShared: false }, async (made) => {
    ({ cloud, cell } = made);
    flavor = await cloud.compute.flavor();
    instances = made.instancesOf(agent().name);
  });

  const agent = () => cell.agents[0]!;
  const guests = (id: string) => guestsOnDisk(instances, id);
  const ticking = (id: string) =>
    eventually("ticks", () => guests(id).length === 1 && (guests(id)[0]?.ticks.length ?? 0) > 0, PATIENT);
  /** A server that runs, with the directory of its guest. */
  const booted = async () => {
    const id = await cloud.compute.boot({ flavor, image: NANO_IMAGE_ID });
    expect((await cloud.compute.endedOne(id)).status).toBe("ACTIVE");
    await ticking(id);
    return { id, dir: guests(id)[0]?.dir ?? "" };
  };
  const rebuild = (id: string, status: string) =>
    cloud.compute.changed(id, "rebuild", status, { imageRef: NANO_IMAGE_ID });
  const removeDir = (dir: string) => rmSync(dir, { recursive: true });

  test("a server is rebuilt whose host has lost its disk, with the guest and the agent's journal", async () => {
    const { id, dir } = await booted();
    await agent().kill();
    killQemu(dir);
    removeDir(dir);
    rmSync(agent().journal);
    await agent().start();
    await cell.hostsUp();
    await rebuild(id, "ACTIVE");
    await ticking(id);
    await cloud.expectCleanAudit();
  });

  test("an agent whose journal was removed takes over the guests that run, and their servers can be stopped, rebuilt and deleted", async () => {
    const [stopped, rebuilt, deleted] = [await booted(), await booted(), await booted()];
    const qemus = () => [stopped, rebuilt, deleted].map(({ dir }) => findRunningQemu(dir)?.pid);
    const before = qemus();
    await agent().kill();
    rmSync(agent().journal);
    await agent().start();
    await cell.hostsUp();
    expect(qemus()).toEqual(before);
    await cloud.expectCleanAudit();
    await cloud.compute.changed(stopped.id, "os-stop", "SHUTOFF");
    await rebuild(rebuilt.id, "ACTIVE");
    await ticking(rebuilt.id);
    await cloud.compute.delete(deleted.id);
    await cloud.compute.gone([deleted.id]);
    expect(qemus()).toEqual([undefined, undefined, undefined]);
    expect(guests(deleted.id)).toEqual([]);
    await cloud.expectCleanAudit();
    await cloud.compute.changed(stopped.id, "os-start", "ACTIVE");
    await ticking(stopped.id);
  });

  test("a server is rebuilt whose guest somebody has removed while it ran, and its QEMU ends", async () => {
    const { id, dir } = await booted();
    removeDir(dir);
    await rebuild(id, "ACTIVE");
    await ticking(id);
    expect(findRunningQemu(dir)).toBeNull();
    await cloud.expectCleanAudit();
  });

  test("no guest is made beside a QEMU that runs in a directory that somebody has removed, until it has ended", async () => {
    const { id, dir } = await booted();
    await agent().kill();
    removeDir(dir);
    await agent().start();
    await cell.hostsUp();
    await rebuild(id, "ERROR");
    expect(guests(id)).toEqual([]);
    expect(findRunningQemu(dir)).not.toBeNull();
    killQemu(dir);
    await rebuild(id, "ACTIVE");
    await ticking(id);
    await cloud.expectCleanAudit();
  });
});
