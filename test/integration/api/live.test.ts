import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  applyLiveChange,
  type HeldPicture,
  holdPicture,
  readLiveEvents,
} from "../../../services/api/dashboard/read-live-events.ts";
import { hostName } from "../../contract/cell-fixtures.ts";
import { eventually } from "../../rigs/eventually.ts";
import { ApiRig } from "./api-rig.ts";

/** A watcher over HTTP that holds the picture. */
class Watcher {
  held: HeldPicture | null = null;
  lastId = "";
  pictures = 0;
  readonly #abort = new AbortController();

  async open(rig: ApiRig, headers: Record<string, string> = {}): Promise<void> {
    const { host, port } = rig.api.address;
    const response = await fetch(`http://${host}:${port}/berth/v1/live`, { headers, signal: this.#abort.signal });
    if (response.body === null || response.status !== 200) throw new Error(`status ${response.status}`);
    expect(response.headers.get("content-type")).toContain("text/event-stream");
    void this.#read(response.body).catch(() => undefined);
  }

  async #read(body: ReadableStream<Uint8Array>): Promise<void> {
    for await (const event of readLiveEvents(body)) {
      this.lastId = event.id;
      if (event.kind === "picture") {
        this.pictures += 1;
        this.held = holdPicture(event.picture);
      } else if (this.held !== null) this.held = applyLiveChange(this.held, event.change);
    }
  }

  close(): void {
    this.#abort.abort();
  }

  path(id: string) {
    return this.held?.paths.get(id);
  }
}

let rig: ApiRig;
let watcher: Watcher;
beforeEach(async () => {
  rig = await ApiRig.start({ dashboard: true });
  watcher = new Watcher();
});
afterEach(async () => {
  watcher.close();
  await rig.close();
});

describe("the stream of the dashboard", () => {
  test("has the hosts of all cells with their resources, and each change of them", async () => {
    await watcher.open(rig);
    await eventually("the hosts", () => watcher.held?.hosts.size === 6);
    expect(watcher.held?.classes).toContain("VCPU");
    expect(watcher.held?.cells.map(({ name }) => name)).toEqual(["north", "south"]);
    const at = 6 + 2 * (watcher.held?.classes.indexOf("VCPU") ?? 0);
    expect(watcher.held?.hosts.get(`0/${hostName(1)}`)?.slice(at, at + 2)).toEqual([0, 8]);
    await rig.bootActive("north", 1);
    await rig.put(`/berth/v1/hosts/${hostName(2)}`, { disabled: true });
    await eventually("the server on its host, and the closed host", () => {
      const [one, two] = [1, 2].map((index) => watcher.held?.hosts.get(`0/${hostName(index)}`));
      return one?.[3] === 1 && one[at] === 1 && ((two?.[2] ?? 0) & 2) === 2;
    });
    expect(watcher.pictures).toBe(1);
  });

  test("has every step of a build that hops: accepted, its failed host with the reason, its alternate, and the end", async () => {
    await watcher.open(rig);
    const id = await rig.boot({ name: "hopper" });
    await eventually("the request", () => watcher.path(id)?.state === "accepted");
    expect(watcher.path(id)).toMatchObject({ name: "hopper", project: "default", kind: "build", cell: null });
    await eventually("the count of those that wait", () => watcher.held?.figures.waiting === 1);
    const task = await rig.dispatch(id, "north", [0, 1]);
    await eventually("the first host", () => watcher.path(id)?.attempts.length === 1);
    const taken = await rig.hop("north", task, 1, "disk full");
    await eventually("the hop", () => watcher.path(id)?.attempts.length === 2);
    await rig.cell("north").store.commitActive([{ ...taken, selection: 1 }]);
    const path = await eventually("the end", () => {
      const one = watcher.path(id);
      return one?.state === "active" && one.attempts.at(-1)?.result === "success" && one;
    });
    expect(path.attempts.map(({ host, result, reason }) => [host, result, reason])).toEqual([
      [hostName(0), "failed", "disk full"],
      [hostName(1), "success", null],
    ]);
    expect(path.endedAt).toBeGreaterThanOrEqual(path.at);
    await eventually("the counts", () => watcher.held?.figures.counts.active === 1);
    expect(watcher.held?.figures).toMatchObject({ waiting: 0, busy: 0, counts: { placed: 1, hops: 1, failed: 0 } });
  });

  test("has a request that found no host, with the reason", async () => {
    await watcher.open(rig);
    const id = await rig.boot();
    await rig.store.failRequests([{ serverUuid: id, cell: null, fault: "No valid host was found." }]);
    await eventually("the failure", () => watcher.path(id)?.state === "error");
    expect(watcher.path(id)?.fault).toBe("No valid host was found.");
  });

  test("has the events from before somebody watched, too", async () => {
    const id = await rig.bootActive("south", 4);
    await watcher.open(rig);
    await eventually("the path", () => watcher.path(id)?.state === "active");
    expect(watcher.path(id)).toMatchObject({ cell: "south", attempts: [{ host: hostName(4), result: "success" }] });
  });

  test("has only the missed changes for a client that reconnects with the last id", async () => {
    await watcher.open(rig);
    await eventually("the picture", () => watcher.held !== null);
    await eventually("the conductors", () => watcher.held?.cells.every(({ conductors }) => conductors.length === 1));
    const held = watcher.held;
    watcher.close();
    const id = await rig.bootActive("north", 0);
    const back = new Watcher();
    back.held = held;
    await back.open(rig, { "last-event-id": watcher.lastId });
    await eventually("the path", () => back.path(id)?.state === "active");
    expect(back.pictures).toBe(0);
    back.close();
  });

  test("shows a cell that falls silent as such, and continues for the others", async () => {
    await watcher.open(rig);
    rig.cell("north").dead = true;
    const id = await rig.bootActive("south", 4);
    await eventually("the silence", () => watcher.held?.cells[0]?.answers === false);
    await eventually("the path in the other cell", () => watcher.path(id)?.state === "active");
  });

  test("is accompanied by each host's tree of providers with its servers", async () => {
    const id = await rig.bootActive("north", 1);
    const tree = (await rig.get(`/berth/v1/live/hosts/${hostName(1)}`)).json();
    expect(tree).toMatchObject({ host: hostName(1), cell: "north", servers: [{ id, project: "default" }] });
    const vcpu = tree.providers[0].inventories.find((one: { class: string }) => one.class === "VCPU");
    expect(vcpu).toMatchObject({ used: 1, capacity: 8 });
    expect((await rig.get("/berth/v1/live/hosts/nobody")).statusCode).toBe(404);
  });
});

describe("access to the dashboard", () => {
  test("is for admins alone; the page itself needs no token, and may load nothing from elsewhere", async () => {
    const strict = await ApiRig.start({ auth: "noauth2", dashboard: true });
    try {
      for (const path of ["/live", "/live/picture", `/live/hosts/${hostName(0)}`]) {
        const asked = async (headers: Record<string, string>) =>
          (await strict.get(`/berth/v1${path}`, headers)).statusCode;
        expect([path, await asked({}), await asked({ "x-auth-token": "bob:p" })]).toEqual([path, 401, 403]);
      }
      expect((await strict.get("/berth/v1/live/picture", { "x-auth-token": "admin" })).json().classes).toContain(
        "VCPU",
      );
      expect((await strict.put("/berth/v1/faults", {}, { "x-auth-token": "admin" })).statusCode).toBe(404);
    } finally {
      await strict.close();
    }
  });

  test("is refused to every caller if the dashboard is disabled", async () => {
    const closed = await ApiRig.start();
    for (const path of ["/dashboard", "/berth/v1/live", "/berth/v1/live/picture"])
      expect((await closed.get(path)).statusCode).toBe(404);
    await closed.close();
  });
});
