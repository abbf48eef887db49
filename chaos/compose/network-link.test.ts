import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ContainerPart } from "./container-part.ts";
import { NetworkLink } from "./network-link.ts";

const path = process.env.PATH;
let dir = "";

/**
 * A fake `docker` that records its calls, and like the real one refuses a command while the same one is running. All containers are dead.
 */
const DOCKER = `#!/bin/sh
[ "$1" = inspect ] && echo exited && exit
mkdir "$0.busy" || exit 1
echo "$@" >> "$0.log"
rmdir "$0.busy"
`;

beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), "berth-docker-"));
  writeFileSync(join(dir, "docker"), DOCKER);
  chmodSync(join(dir, "docker"), 0o755);
  process.env.PATH = `${dir}:${path}`;
});
afterAll(() => {
  process.env.PATH = path;
  rmSync(dir, { recursive: true });
});

test("a link that the end of its fault and the end of the run heal at the same time is joined only once", async () => {
  const member = new ContainerPart({ name: "cell1-nats", role: "nats", cell: "cell1", id: "c0ffee" });
  const above = { name: "above", role: "above", cell: null } as const;
  const link = new NetworkLink({ from: above, to: member, network: "deploy_uplink-cell1", member });
  await Promise.all([link.cut("both"), link.heal(), link.heal()]);
  expect(readFileSync(join(dir, "docker.log"), "utf8").trim().split("\n")).toEqual([
    "network disconnect deploy_uplink-cell1 c0ffee",
    "network connect --alias cell1-nats deploy_uplink-cell1 c0ffee",
  ]);
});

test("a container that a killed run has left dead is recognised as dead", async () => {
  const part = new ContainerPart({ name: "api-1", role: "api", cell: null, id: "c0ffee" });
  expect(part.running).toBe(true);
  await part.look();
  expect(part.running).toBe(false);
});
