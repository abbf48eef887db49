import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Drain } from "./drain.ts";

const LIMITS = { moveMsMax: 50, pauseMsMax: 1, lastLookMs: 0 };
const ID = "11111111-1111-4111-8111-111111111111";

/** A Compute API with one server, which the tests change. */
interface Scene {
  status: string;
  host: string;
  taskState: string | null;
  /** Whether the server's cell does not answer when the server is shown. */
  isCellSilent: boolean;
  isDeleted: boolean;
  /** Whether the server is back on the host whenever its servers are listed. */
  comesBack: boolean;
  /** The unconfirmed moves of the server away from the host, by their types. */
  moves: readonly string[];
  /** Called with each action. Returns the status of the answer, or null to break the connection. */
  onAction: (action: string) => number | null;
  movesStatus: number;
  readonly actions: string[];
}

let scene: Scene;
let http: Server;
beforeEach(async () => {
  scene = {
    ...{
      status: "ACTIVE",
      host: "old",
      taskState: null,
      isCellSilent: false,
      isDeleted: false,
      comesBack: false,
      moves: [],
      movesStatus: 200,
      actions: [],
    },
    onAction: () => 202,
  };
  http = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += String(chunk);
    const [action] = Object.keys(body === "" ? {} : JSON.parse(body));
    if (action !== undefined) scene.actions.push(action);
    const [status, answer] =
      action === undefined ? answerTo(request.url ?? "") : [scene.onAction(action), fault("refused")];
    if (status === null) return void request.socket.destroy();
    response.writeHead(status, { "content-type": "application/json" });
    response.end(status === 202 ? "" : JSON.stringify(answer));
  });
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
});
afterEach(() => new Promise((resolve) => http.close(resolve)));

const fault = (message: string) => ({ fault: { code: 0, message } });

function answerTo(path: string): [number, unknown] {
  if (path.includes("/servers/detail") && scene.comesBack) scene.host = "old";
  const { status, host, taskState } = scene;
  const server = { id: ID, name: "web", status, "OS-EXT-SRV-ATTR:host": host, "OS-EXT-STS:task_state": taskState };
  if (path.includes("/os-migrations")) {
    const migrations = scene.moves.map((type) => ({ uuid: ID, instance_uuid: ID, migration_type: type }));
    return [scene.movesStatus, scene.movesStatus === 200 ? { migrations } : fault("Cell two does not answer.")];
  }
  if (path.includes("/os-instance-actions/"))
    return [200, { instanceAction: { events: [{ host: "new", details: "disk full" }] } }];
  if (path.includes("/os-instance-actions")) return [200, { instanceActions: [{ request_id: "req-1" }] }];
  if (path.includes("/servers/detail"))
    return [200, { servers: !scene.isDeleted && scene.host === "old" ? [server] : [] }];
  if (scene.isCellSilent) return [200, { server: { id: ID, name: "web", status: "UNKNOWN" } }];
  return scene.isDeleted ? [404, fault("gone")] : [200, { server }];
}

async function drain(limits = LIMITS) {
  const api = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  const made = new Drain({ api, token: null }, { host: "old", live: false, limits });
  const { moved, stayed, unlisted } = await made.run();
  return { moved, stayed: stayed.map(({ why }) => why), unlisted, total: made.tally.total };
}

/** Answers migrations and confirmations as a cloud does, at once. */
function carryOut(action: string): number {
  const isMove = action === "migrate";
  scene.status = isMove ? "VERIFY_RESIZE" : "ACTIVE";
  if (isMove) scene.host = "new";
  scene.moves = isMove ? ["migration"] : [];
  return 202;
}

test("moves the server and confirms the move", async () => {
  scene.onAction = carryOut;
  expect(await drain()).toEqual({ moved: 1, stayed: [], unlisted: null, total: 1 });
  expect(scene.actions).toEqual(["migrate", "confirmResize"]);
});

test("an action whose answer is lost is not requested twice when the api has accepted it", async () => {
  scene.onAction = (action) => {
    carryOut(action);
    return null;
  };
  expect(await drain()).toEqual({ moved: 1, stayed: [], unlisted: null, total: 1 });
  expect(scene.actions).toEqual(["migrate", "confirmResize"]);
});

test("an action that a restarting api did not accept is requested again", async () => {
  scene.onAction = (action) => (scene.actions.length < 3 ? 503 : carryOut(action));
  expect(await drain()).toMatchObject({ moved: 1, stayed: [] });
  expect(scene.actions).toEqual(["migrate", "migrate", "migrate", "confirmResize"]);
});

test("a second drain of the same host waits for the move that the first one requested", async () => {
  scene.onAction = (action) => {
    if (action === "confirmResize") return carryOut(action);
    scene.taskState = "resize_prep";
    setTimeout(() => {
      scene.taskState = null;
      carryOut("migrate");
    }, 10);
    return 409;
  };
  // The move ends by itself, after a time that a busy machine may stretch.
  expect(await drain({ ...LIMITS, moveMsMax: 30_000 })).toEqual({ moved: 1, stayed: [], unlisted: null, total: 1 });
});

test("a user's resize that begins at the same moment is not confirmed, and is named", async () => {
  scene.onAction = () => {
    Object.assign(scene, { status: "VERIFY_RESIZE", host: "new", moves: ["resize"] });
    return 409;
  };
  const { moved, stayed } = await drain();
  expect([moved, stayed]).toEqual([0, [expect.stringContaining("it was resized to new")]]);
  expect(scene.actions).toEqual(["migrate"]);
});

test("a server whose move fails stays with the reason of the move's events", async () => {
  expect(await drain()).toMatchObject({ moved: 0, stayed: ["its move failed, and it is ACTIVE: new: disk full"] });
  expect(scene.actions).toEqual(["migrate"]);
});

test("a move that takes too long is named with what it waits for", async () => {
  scene.taskState = "resize_migrating";
  expect((await drain()).stayed).toEqual([
    "it is still in the state resize_migrating, which continues: new: disk full",
  ]);
});

test("a server that is deleted meanwhile counts neither as moved nor as stayed", async () => {
  scene.onAction = () => {
    scene.isDeleted = true;
    return 404;
  };
  expect(await drain()).toEqual({ moved: 0, stayed: [], unlisted: null, total: 0 });
});

test("while another cell is silent, servers are moved, and the report says that earlier moves could not be listed", async () => {
  scene.onAction = carryOut;
  scene.movesStatus = 503;
  expect(await drain()).toMatchObject({ moved: 1, stayed: [], unlisted: "Cell two does not answer." });
});

test("a migration to confirm is not forgotten when the cell falls silent after it was listed", async () => {
  Object.assign(scene, { host: "new", moves: ["migration"], isCellSilent: true });
  const { stayed, unlisted } = await drain();
  expect([stayed, unlisted]).toEqual([[], expect.stringContaining(`The cell of server ${ID} does not answer`)]);
});

test("a server whose cell does not answer after its move was requested does not count as moved", async () => {
  scene.onAction = (action) => {
    scene.isCellSilent = true;
    return carryOut(action);
  };
  scene.moves = [];
  const { moved, stayed } = await drain();
  expect([moved, stayed]).toEqual([0, [expect.stringContaining("UNKNOWN")]]);
});

test("a server that keeps coming back is given up after some rounds", async () => {
  scene.onAction = carryOut;
  scene.comesBack = true;
  const { stayed } = await drain();
  expect(stayed).toEqual(["it came to the host while the host was drained"]);
  expect(scene.actions.filter((action) => action === "migrate").length).toBe(5);
});
