import { beforeEach, expect, test } from "vitest";
import type { Server } from "../core/tasks/server.ts";
import type { GuestWithVolumes } from "./known-servers.ts";
import { SimContents } from "./sim-contents.ts";
import { World } from "./world.ts";

const SERVER = "00000000-0000-4000-8000-000000000001";

let world: World;
let guest: GuestWithVolumes;
let contents: SimContents;
beforeEach(() => {
  world = new World(1, { wholeHistory: false });
  guest = { host: "host-1", serverUuid: SERVER, volumes: ["v"], files: { v: ["own"] }, running: true };
  const server = { status: "ACTIVE", host: "host-1" } as Server;
  contents = new SimContents(world, { look: () => server, guests: () => [guest] }, ["shared"]);
});
const found = () => world.findings.map(({ what }) => what);

test("a guest that writes to two files until it changes over to the copy loses nothing", () => {
  contents.copied("own", "other");
  guest = { ...guest, replacements: { v: { by: "o", isUsed: false, file: "other" } } };
  contents.write();
  guest = { ...guest, files: { v: ["other"] }, replacements: { v: { by: "o", isUsed: true, file: "other" } } };
  contents.dropped("v", "own", "other");
  contents.write();
  expect([found(), contents.wrongAtRest("v", "other")]).toEqual([[], []]);
  expect(contents.wrongAtRest("v", "own")).toEqual([expect.stringContaining("lacks what was written to it last")]);
});

test("a guest that has written to its own volume alone since it was copied goes on with a copy that is too old", () => {
  contents.copied("own", "other");
  contents.write();
  guest = { ...guest, files: { v: ["other"] } };
  contents.write();
  expect(found()).toEqual([expect.stringContaining("without what was written before (1 of 2)")]);
});

test("Cinder deletes neither a file that a guest uses nor one with the latest content", () => {
  contents.write();
  contents.dropped("v", "own", "other");
  expect(found()).toEqual([
    expect.stringContaining(`Cinder has deleted own of volume v, which ${SERVER} has on host-1`),
    expect.stringContaining("Cinder has deleted own with the latest content of volume v"),
  ]);
  contents.write();
  expect(found()[2]).toContain("which Cinder has deleted");
});

test("a volume that users have taken from its server while it was in doubt may lack what was written last, until an operator has decided", () => {
  contents.write();
  contents.forsake("v");
  guest = { ...guest, files: { v: ["other"] } };
  contents.write();
  expect([found(), contents.wrongAtRest("v", "own")]).toEqual([[], []]);
  contents.decided("v", "other");
  expect(contents.wrongAtRest("v", "own")).toHaveLength(1);
});

test("volumes of several servers are left out, since Cinder migrates none of them", () => {
  guest = { ...guest, files: { shared: ["own"] } };
  contents.write();
  expect(contents.versionOf("own")).toBe(0);
});
