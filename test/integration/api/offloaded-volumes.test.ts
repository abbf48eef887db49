import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { eventually } from "../../rigs/eventually.ts";
import { ApiRig } from "./api-rig.ts";
import { ADMIN, attachmentCalls } from "./attachment-calls.ts";

let rig: ApiRig;
beforeEach(async () => {
  rig = await ApiRig.start({ auth: "noauth2", volumes: "simple" });
});
afterEach(() => rig.close());

const { call, newVolume, statusOf, pathOf, attach, detach, show, active, north, openTask, finish, attached, settler } =
  attachmentCalls(() => rig);

describe("a server that was offloaded", () => {
  const act = (server: string, action: string) => call("POST", `/v2.1/servers/${server}/action`, { [action]: null });
  async function offloaded(): Promise<string> {
    const server = await active();
    expect((await act(server, "shelve")).status).toBe(202);
    await finish(server, "succeed");
    expect((await act(server, "shelveOffload")).status).toBe(202);
    await finish(server, "offloading", "succeed");
    expect((await show(server)).status).toBe("SHELVED_OFFLOADED");
    return server;
  }

  /** Carries out the operation for which a call waits, after a look at what is so meanwhile. Returns the answer to the call. */
  async function carriedOut<Answer>(
    server: string,
    calling: Promise<Answer>,
    look: () => unknown = () => {},
  ): Promise<Answer> {
    await eventually("the operation to be begun", () => openTask(server) !== undefined);
    await look();
    await finish(server, "succeed");
    return calling;
  }

  test("gets and loses a volume without a host, and its actions have the names that Nova gives them there", async () => {
    const [server, id] = [await offloaded(), await newVolume()];
    const answer = await carriedOut(server, attach(server, id), async () => {
      const operation = { source: undefined, kind: "attach-volume-offloaded", volume: { volumeId: id } };
      expect(openTask(server)?.work).toMatchObject({ value: operation });
      expect((await show(server))["OS-EXT-STS:task_state"]).toBeNull();
      expect((await act(server, "unshelve")).status).toBe(409);
    });
    expect(answer).toMatchObject({ status: 200, json: { volumeAttachment: { device: "/dev/vdb" } } });
    await settler(600_000).settle();
    expect([await statusOf(id), (await show(server)).status]).toEqual(["in-use", "SHELVED_OFFLOADED"]);
    const detached = await carriedOut(server, detach(server, id), () => {
      expect(openTask(server)?.work).toMatchObject({ value: { source: undefined, kind: "detach-volume-offloaded" } });
    });
    expect(detached.status).toBe(202);
    await settler(600_000).settle();
    expect([await statusOf(id), (await call("GET", pathOf(server))).json.volumeAttachments]).toEqual(["available", []]);
    const url = `/v2.1/servers/${server}/os-instance-actions`;
    const actions: { action: string; request_id: string }[] = (await call("GET", url)).json.instanceActions;
    const events = await Promise.all(
      actions.slice(0, 2).map(async (one) => {
        const { events: found } = (await call("GET", `${url}/${one.request_id}`)).json.instanceAction;
        return [one.action, found[0].event, found[0].host ?? null, found[0].result];
      }),
    );
    expect(events).toEqual([
      ["detach_volume", "api_detach_volume", null, "Success"],
      ["attach_volume", "api_attach_volume", null, "Success"],
    ]);
  });

  test("answers the attachment and the detachment of a volume only when its cell has carried them out", async () => {
    const [server, id] = [await offloaded(), await newVolume()];
    for (const change of [attach, detach]) {
      const { outcomes } = north();
      const told = Promise.withResolvers<void>();
      const asking = vi.spyOn(north(), "outcomes").mockImplementation(async (ids) => {
        await told.promise;
        return outcomes.call(north(), ids);
      });
      let isAnswered = false;
      const calling = change(server, id).finally(() => {
        isAnswered = true;
      });
      await eventually("the cell to be asked whether the operation has ended", () => asking.mock.calls.length > 0);
      await eventually("the operation to be begun", () => openTask(server) !== undefined);
      await finish(server, "succeed");
      expect([isAnswered, openTask(server)]).toEqual([false, undefined]);
      told.resolve();
      expect((await calling).status).toBe(change === attach ? 200 : 202);
      asking.mockRestore();
      await settler(600_000).settle();
    }
    expect(await statusOf(id)).toBe("available");
  });

  test("loses a volume whose attachment has ended before anything has looked, and keeps one whose attachment runs", async () => {
    const [server, id] = [await offloaded(), await newVolume()];
    await carriedOut(server, attach(server, id), async () => {
      expect([(await detach(server, id)).status, await statusOf(id)]).toEqual([409, "attaching"]);
    });
    const answers = await carriedOut(server, Promise.all([detach(server, id), detach(server, id)]), () => {
      expect(openTask(server)?.work).toMatchObject({ value: { kind: "detach-volume-offloaded" } });
    });
    // The later one finds the volume detaching, or the server busy.
    expect(answers.map(({ status }) => status).toSorted()).toEqual([202, expect.toBeOneOf([400, 409])]);
    await settler(600_000).settle();
    expect(await statusOf(id)).toBe("available");
  });

  test("keeps a volume until no host that has not answered can have its guest", async () => {
    const [server, id] = [await active(), await newVolume()];
    await attached(server, id);
    await act(server, "shelve");
    await finish(server, "succeed");
    await act(server, "shelveOffload");
    await finish(server, "offloading", "succeed-keeping");
    expect((await carriedOut(server, detach(server, id))).status).toBe(202);
    for (let round = 0; round < 3; round += 1) await settler().settle();
    expect(await statusOf(id)).toBe("detaching");
    expect(await north().releaseEvacuated([{ host: "host-0", remaining: [] }])).toHaveLength(1);
    await settler().settle();
    expect(await statusOf(id)).toBe("available");
  });

  test("gives a volume back that it was to get, if it is deleted meanwhile", async () => {
    const [server, id] = [await offloaded(), await newVolume()];
    const attaching = attach(server, id);
    await eventually("the attachment to be begun", () => openTask(server) !== undefined);
    expect((await call("DELETE", `/v2.1/servers/${server}`)).status).toBe(204);
    // There is no guest that a host would have to destroy.
    await eventually("the volume to be free", async () => {
      await settler().settle();
      return (await statusOf(id)) === "available";
    });
    expect((await attaching).status).toBe(200);
  });

  test("is refused before 2.20, like one that is shelved on its host, and gets no volume with a tag", async () => {
    const [server, shelved, id] = [await offloaded(), await active(1), await newVolume()];
    await act(shelved, "shelve");
    await finish(shelved, "succeed");
    for (const [on, state] of [
      [server, "shelved_offloaded"],
      [shelved, "shelved"],
    ] as const) {
      const old = await attach(on, id, {}, 19);
      expect([old.status, old.json.conflictingRequest.message]).toEqual([
        409,
        `Cannot 'attach_volume' instance ${on} while it is in vm_state ${state}`,
      ]);
      expect((await call("DELETE", pathOf(on, id), undefined, ADMIN, 19)).status).toBe(409);
    }
    const tagged = await attach(server, id, { tag: "t" });
    expect([tagged.status, tagged.json.badRequest.message]).toEqual([
      400,
      "Tagged volume attachment is not supported for shelved-offloaded instances.",
    ]);
    expect(await statusOf(id)).toBe("available");
    expect((await attach(shelved, id)).status).toBe(200);
    expect(openTask(shelved)?.work).toMatchObject({ value: { kind: "attach-volume" } });
  });
});
