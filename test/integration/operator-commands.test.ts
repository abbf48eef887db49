import { randomUUID } from "node:crypto";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findCommand } from "../../cli/commands.ts";
import { eventually } from "../rigs/eventually.ts";
import { keepOutput } from "../rigs/keep-output.ts";
import { ApiRig } from "./api/api-rig.ts";

let rig: ApiRig;
let api: string;
beforeAll(async () => {
  rig = await ApiRig.start({ dashboard: true });
  api = `http://127.0.0.1:${rig.api.address.port}`;
});
afterAll(() => rig.close());

/** Runs `berth <words>` in this process. */
function berth(...words: readonly string[]): ReturnType<typeof keepOutput> {
  const found = findCommand([...words, "--api", api]);
  if (found.kind !== "command") throw new Error(found.kind);
  return keepOutput(() => found.command.run(found.argv));
}

test("settings are set, shown with a mark on changed values, and unset", async () => {
  expect(await berth("settings", "set", "host_subset_size=2", "shuffle_best_same_weighed_hosts=false")).toEqual({
    code: 0,
    text: "host_subset_size = 2\nshuffle_best_same_weighed_hosts = false\nversion 1\n",
  });
  expect((await berth("settings", "show")).text).toMatch(/^version 1\n[\s\S]*^\* {2}host_subset_size +2$/m);
  expect((await berth("settings", "unset", "host_subset_size")).text).toBe("host_subset_size = 5\nversion 2\n");
});

test("an invalid setting is refused with its reason", async () => {
  await expect(berth("settings", "set", "host_subset_size=many")).rejects.toThrow(/host_subset_size cannot be "many"/);
  expect(await berth("settings", "set", "host_subset_size")).toMatchObject({ code: 2 });
});

test("ratios are set by aggregate, shown by host with their source, and unset", async () => {
  const { id } = (await rig.post("/v2.1/os-aggregates", { aggregate: { name: "big" } })).json().aggregate;
  await rig.post(`/v2.1/os-aggregates/${id}/action`, { add_host: { host: "host-1" } });
  expect(await berth("ratios", "set", "--aggregate", "big", "--vcpu", "8", "--classes", "CUSTOM_X=2")).toEqual({
    code: 0,
    text: "north\thost-1\tratios VCPU=8 CUSTOM_X=2\n1 hosts changed\n",
  });
  expect((await berth("ratios", "show", "--host", "host-1")).text).toMatch(
    /VCPU +8 +0 +8 +aggregate big \(agent: 1\) +64/,
  );
  expect((await berth("ratios", "show")).text).toContain("aggregate big  VCPU=8 CUSTOM_X=2");
  expect((await berth("ratios", "unset", "--aggregate", "big", "vcpu", "CUSTOM_X")).text).toContain(
    "ratios as its agent reports them",
  );
  expect((await berth("ratios", "set", "--vcpu", "8")).code).toBe(2);
});

test("a host is disabled with a reason, shown, listed and enabled, and its failures are reset", async () => {
  await rig.softState.recordBuildFailure("north", "host-2");
  expect((await berth("host", "disable", "host-2", "--reason", "smells")).text).toBe("host-2: up, disabled (smells)\n");
  expect((await berth("host", "show", "host-2")).text).toMatch(
    /state +up, disabled \(smells\)[\s\S]*failed builds +1 /,
  );
  expect((await berth("host", "list")).text).toMatch(/^host-2 +north +nova +up, disabled \(smells\) +1$/m);
  expect((await berth("host", "enable", "host-2")).text).toBe("host-2: up\n");
  const shown = JSON.parse((await berth("host", "show", "host-2", "--reset-failures", "--json")).text);
  expect(shown).toMatchObject({ host: "host-2", build_failures: 0, disabled_reason: null });
  await expect(berth("host", "show", "nobody")).rejects.toThrow("nobody could not be found");
});

test("sync-aggregates reports cells that do not answer, also by its exit code", async () => {
  expect(await berth("sync-aggregates", "--dry-run")).toEqual({ code: 0, text: "0 hosts differ\n" });
  rig.cell("south").dead = true;
  const { code, text } = await berth("sync-aggregates");
  expect([code, text]).toEqual([1, "cell south does not answer: it is updated when it does\n0 hosts changed\n"]);
  rig.cell("south").dead = false;
});

test("explain shows the decision for an existing server and for a possible one", async () => {
  const server = "0000000b-0000-4000-8000-000000000001";
  await expect(berth("explain", server)).rejects.toThrow(/Nothing is known of server/);
  const effort = { tries: 1, lostRaces: 0, looks: 0, viewLagMs: null };
  const place = { outcome: "placed", cell: "north", host: "host-0", alternates: [], feasible: 3, weights: [] } as const;
  const decision = { ...place, ...effort };
  await rig.decisions.putDecisions([{ serverUuid: server, requestId: "req-1", scheduler: "x", atMs: 0, decision }]);
  expect((await berth("explain", server)).text).toContain("placed on host-0 (cell north), one of 3 hosts that fit");
  const asked = await berth("explain", "--flavor", "1", "--host", "host-1", "--hint", "same_host=x");
  expect(asked).toMatchObject({ code: 0 });
  expect(asked.text).toMatch(/^STEP +LEFT +north +south +REMOVED +WHY$/m);
  expect(asked.text).toContain("host-1 (cell north) would not be chosen");
  expect(JSON.parse((await berth("explain", "--flavor", "1", "--json")).text)).toMatchObject({ hosts: 6 });
  expect((await berth("explain")).code).toBe(2);
  expect((await berth("explain", server, "--flavor", "1")).code).toBe(2);
});

test("image prune removes the files of deleted images, and no other file", async () => {
  const dir = await mkdtemp(join(tmpdir(), "berth-images-"));
  try {
    const register = async (): Promise<string> => (await rig.post("/image/v2/images", {})).json().id;
    const [kept, deleted, unregistered] = [await register(), await register(), randomUUID()];
    await rig.delete(`/image/v2/images/${deleted}`);
    const stay = [`${kept}.qcow2`, `${unregistered}.raw`, `.${deleted}.${randomUUID()}.part`, `${deleted}.txt`];
    const gone = [`${deleted}-${"0a".repeat(16)}`, `${deleted}.qcow2`];
    for (const name of [...stay, ...gone]) await writeFile(join(dir, name), "");
    const prune = (...words: readonly string[]) => berth("image", "prune", "--images-path", dir, ...words);
    const listed = ({ text, ...rest }: { code: number; text: string }) => ({ ...rest, lines: text.split("\n").sort() });
    expect(listed(await prune("--dry-run"))).toEqual({
      code: 0,
      lines: ["", ...gone, "2 files of deleted images found, 2 kept"].sort(),
    });
    expect(listed(await prune()).lines).toContain("2 files of deleted images removed, 2 kept");
    expect((await readdir(dir)).sort()).toEqual(stay.sort());
    expect(await berth("image", "prune", "--images-path", join(dir, "none"))).toMatchObject({ code: 2 });
  } finally {
    await rm(dir, { recursive: true });
  }
});

test("top prints the cells and the newest requests once where there is no terminal", async () => {
  await rig.bootActive("north", 2, { name: "shown" });
  const text = await eventually("the server's way", async () => {
    const { text: printed } = await berth("top", "--once");
    return printed.includes("+ host-2") && printed;
  });
  expect(text).toMatch(/^north +3 /m);
  expect(text).toMatch(/ shown +default +build +active +.* \+ host-2$/m);
});
