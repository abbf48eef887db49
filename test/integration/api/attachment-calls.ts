import { expect } from "vitest";
import { factsOf } from "../../../core/tasks/operation-facts.ts";
import { operationOf } from "../../../core/tasks/operation-record.ts";
import type { Target } from "../../../core/tasks/operation-routes.ts";
import { firstStage } from "../../../core/tasks/operation-stages.ts";
import { writeOf } from "../../../core/tasks/operation-writes.ts";
import type { Task } from "../../../proto/gen/berth/cell.ts";
import { systemClock } from "../../../runtime/clock.ts";
import { CellClient } from "../../../services/api/cells/cell-client.ts";
import { VolumeSettler } from "../../../services/api/compute/server-volumes/volume-settler.ts";
import { eventually } from "../../rigs/eventually.ts";
import type { ApiRig } from "./api-rig.ts";

export const ADMIN = "admin:p";
export const as = (who: string, minor = 89) => ({ "x-auth-token": who, "openstack-api-version": `compute 2.${minor}` });

/** Calls about the volumes of servers, and the parts of conductors and settlers that they need. */
export function attachmentCalls(rigOf: () => ApiRig) {
  const call = async (
    method: "GET" | "POST" | "PUT" | "DELETE",
    url: string,
    body?: unknown,
    who = ADMIN,
    minor = 89,
  ) => {
    const type = body === undefined ? {} : { "content-type": "application/json" };
    const payload = body === undefined ? {} : { payload: JSON.stringify(body) };
    const answer = await rigOf().call({ method, url, headers: { ...as(who, minor), ...type }, ...payload });
    return { status: answer.statusCode, json: answer.body === "" ? null : answer.json() };
  };
  const newVolume = async (who = ADMIN): Promise<string> =>
    (await call("POST", "/volume/v3/volumes", { volume: { size: 2 } }, who)).json.volume.id;
  const volume = async (id: string) => (await call("GET", `/volume/v3/volumes/${id}`)).json?.volume;
  const statusOf = async (id: string): Promise<string | undefined> => (await volume(id))?.status;
  const pathOf = (server: string, id = "") =>
    `/v2.1/servers/${server}/os-volume_attachments${id === "" ? "" : `/${id}`}`;
  const attach = (server: string, volumeId: string, fields: object = {}, minor = 89, who = ADMIN) =>
    call("POST", pathOf(server), { volumeAttachment: { volumeId, ...fields } }, who, minor);
  const detach = (server: string, id: string) => call("DELETE", pathOf(server, id));
  const show = async (server: string, minor = 89) =>
    (await call("GET", `/v2.1/servers/${server}`, undefined, ADMIN, minor)).json.server;
  const active = (host = 0) => rigOf().bootActive("north", host, { networks: "none" }, as(ADMIN));
  const north = () => rigOf().cell("north").store;

  const openTask = (server: string): Task | undefined =>
    north()
      .tasks()
      .find((row) => row.serverUuid === server && row.kind === "operate" && row.outcome === null)?.task;

  /** Acts as a conductor: carries the server's open operation through the stages that its host answers with. */
  async function finish(server: string, ...targets: readonly Exclude<Target, "another">[]): Promise<void> {
    const task = openTask(server);
    if (task === undefined) throw new Error(`server ${server} has no open operation`);
    const taken = await rigOf().take("north", task);
    let stage = firstStage(operationOf(task).kind);
    for (const [step, to] of targets.entries()) {
      const write = writeOf(factsOf(task), {
        from: { stage, selection: 0 },
        to,
        selection: 0,
        reason: "why",
        noted: [],
        unseenMs: 0,
      });
      expect(await north().commitStep([{ ...taken, step: step + 1, ...write }])).toMatchObject([{ kind: "committed" }]);
      stage = to as typeof stage;
    }
  }

  const attached = async (server: string, id: string, fields: object = {}) => {
    await eventually("the cell to answer", async () => (await attach(server, id, fields)).status === 200);
    await finish(server, "succeed");
    await settler(600_000).settle();
    expect(await statusOf(id)).toBe("in-use");
  };

  /** The loop of the api takes longer than a call may take before it closes an operation that has not begun. */
  const settler = (settleMs = -1) => {
    const events = {
      cellKnown: () => {},
      cellUnreachable: () => {},
      volumesNotSettled: () => {},
      volumeLeftInDoubt: () => {},
    };
    const settings = { deadlineMs: 1_000, retryMs: 0 };
    const port = { name: "north", store: north(), bus: rigOf().cell("north").bus, view: null };
    const cell = new CellClient(port, { clock: systemClock, events: events as never }, settings);
    const deps = {
      volumes: rigOf().volumes,
      store: rigOf().store,
      cells: new Map([["north", cell]]),
      events,
      clock: systemClock,
    };
    return new VolumeSettler(deps, { pollMs: 1_000, settleMs });
  };

  return {
    ...{ call, newVolume, volume, statusOf, pathOf, attach, detach, show, active, north, openTask, finish },
    ...{ attached, settler },
  };
}
