import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ShownLife } from "../../cli/operators/life-answer.ts";
import { lifeText } from "../../cli/operators/print-life.ts";
import { eventually } from "../rigs/eventually.ts";
import { startTestCloud, type TestCloud } from "../rigs/test-cloud.ts";

const HOSTS = ["one", "two", "three"].map((name) => ({
  name,
  inventories: { VCPU: { total: 16 }, MEMORY_MB: { total: 16_384 }, DISK_GB: { total: 10_000 } },
}));

describe("the life of a server in a whole cloud", () => {
  let cloud: TestCloud;
  beforeAll(async () => {
    cloud = await startTestCloud({ cells: [{ name: "cell-1", hosts: HOSTS }], schedulers: 1, conductors: 1 });
    for (const [id, vcpus] of [
      ["s", 1],
      ["m", 2],
    ])
      await cloud.call("POST", "/v2.1/flavors", { flavor: { id, name: id, vcpus, ram: 64, disk: 1 } });
  });
  afterAll(() => cloud?.close());

  const lifeOf = async (id: string): Promise<ShownLife> => (await cloud.call("GET", `/berth/v1/explain/${id}`)).json;

  async function boot(script: object): Promise<string> {
    const metadata = { "berth:fake": JSON.stringify(script) };
    const server = { name: "web", flavorRef: "s", imageRef: "", networks: "none", metadata };
    return (await cloud.call("POST", "/v2.1/servers", { server })).json.server.id;
  }

  /** The life once the server has this status, no operation is running, and the decision is stored. */
  const lifeAt = (id: string, status: string): Promise<ShownLife> =>
    eventually(`the server to be ${status}`, async () => {
      const life = await lifeOf(id);
      const { state, decisions, requested_moves, tasks } = life;
      const isQuiet = requested_moves.length === 0 && tasks.every(({ outcome }) => outcome !== null);
      return isQuiet && state?.status === status && state.task_state === null && decisions.length > 0 && life;
    });

  async function act(id: string, action: string, value: unknown, status: string): Promise<ShownLife> {
    const answer = await cloud.call("POST", `/v2.1/servers/${id}/action`, { [action]: value });
    expect([action, answer.status]).toEqual([action, expect.toBeOneOf([202, 204])]);
    return lifeAt(id, status);
  }

  test("shows every attempt and both hops with their claims when two hosts fail and the alternate does not", async () => {
    const id = await boot({ outcome: "reschedule", first: 2, reason: "disk full" });
    const life = await lifeAt(id, "ACTIVE");
    const [decision] = life.decisions;
    if (decision?.decision.outcome !== "placed") throw new Error("the server was not placed");
    const path = [decision.decision.host, ...decision.decision.alternates];
    expect(new Set(path).size).toBe(3);
    const [build] = life.tasks;
    expect(build).toMatchObject({ kind: "build", outcome: "success", asked_by: life.request?.asked_by });
    expect(build?.attempts.map(({ host, result, reason }) => [host, result, reason])).toEqual([
      [path[0], "failed", "disk full"],
      [path[1], "failed", "disk full"],
      [path[2], "success", null],
    ]);
    const conductor = build?.conductors[0]?.name;
    expect(conductor).toBeTruthy();
    for (const attempt of build?.attempts ?? []) expect(attempt.conductors).toEqual([conductor]);
    expect(build?.hops.map(({ from, to }) => [from, to])).toEqual([
      [path[0], path[1]],
      [path[1], path[2]],
    ]);
    for (const { gave_back, claimed } of build?.hops ?? []) {
      const classes = (claim: typeof claimed) => claim.map((item) => [item.class, item.amount]).sort();
      expect(classes(claimed)).toEqual([
        ["DISK_GB", 1],
        ["MEMORY_MB", 64],
        ["VCPU", 1],
      ]);
      expect(classes(gave_back)).toEqual(classes(claimed));
      expect(gave_back[0]?.provider).not.toBe(claimed[0]?.provider);
    }
    expect(life.state).toMatchObject({ host: path[2], fault: null });
    expect([life.waits, life.missing]).toEqual([[], []]);
    const told = lifeText(life);

    expect(told).toContain(`ACTIVE, on ${path[2]} in cell cell-1`);
    expect(told).toMatch(new RegExp(`hops from ${path[0]} to ${path[1]}: gives back .*1 VCPU.*, claims .*1 VCPU`));
  });

  test("shows for a resize, a revert, a live migration, a stop and a delete who requested it and which stages it reached", async () => {
    const id = await boot({});
    const first = (await lifeAt(id, "ACTIVE")).state?.host;
    const resized = await act(id, "resize", { flavorRef: "m" }, "VERIFY_RESIZE");
    expect(resized.waits).toEqual(["The server waits for the resize or migration to be confirmed or reverted."]);
    await act(id, "revertResize", null, "ACTIVE");
    const moved = await act(id, "os-migrateLive", { host: null, block_migration: "auto" }, "ACTIVE");
    const last = await act(id, "os-stop", null, "SHUTOFF");
    const asked = last.request?.asked_by;
    expect(last.tasks.map(({ kind, outcome }) => [kind, outcome])).toEqual([
      ["build", "success"],
      ["resize", "success"],
      ["revert", "success"],
      ["live-migrate", "success"],
      ["stop", "success"],
    ]);
    for (const { asked_by, conductors } of last.tasks) {
      expect(asked_by).toMatchObject({ user_id: asked?.user_id, project_id: asked?.project_id });
      expect(conductors).toHaveLength(1);
    }
    expect(new Set(last.tasks.map(({ asked_by }) => asked_by?.request_id)).size).toBe(5);
    const [, resize, revert, live] = last.tasks;
    expect(resize?.move).toMatchObject({ from: first, to: resized.state?.host, status: "reverted" });
    expect(resize?.stages.map(({ stage }) => stage)).toEqual(["preparing", "handing-over", "starting"]);
    expect(revert?.move).toMatchObject({ from: resized.state?.host, to: first });
    expect(live?.move).toMatchObject({ from: first, to: moved.state?.host, status: "completed" });

    await cloud.call("DELETE", `/v2.1/servers/${id}`);
    const gone = await lifeAt(id, "DELETED");
    expect(gone.tasks.at(-1)).toMatchObject({
      ...{ kind: "delete", outcome: "deleted" },
      asked_by: { request_id: gone.deletion?.request_id, user_id: asked?.user_id },
    });
    expect(gone.state).toMatchObject({ host: null, deleted_at: expect.any(String) });
  });

  test("shows ERROR with every attempt and without allocations when all hosts fail", async () => {
    const id = await boot({ outcome: "reschedule", reason: "no power" });
    const life = await lifeAt(id, "ERROR");
    expect(life.tasks[0]?.attempts.map(({ result }) => result)).toEqual(["failed", "failed", "failed"]);
    expect(life.state).toMatchObject({ host: null, fault: { message: expect.stringContaining("no power") } });
    const text = lifeText(life);
    expect(text).toContain("build     ends: error");
    expect(text).toMatch(
      /^fault at .*: No valid host: exceeded maximum number of retries\. 3 attempts on 3 hosts failed.*: no power; /m,
    );
    expect(text).toMatch(new RegExp(`^what to do: .*berth explain ${id}`, "m"));
  });
});
