import { type Static, Type } from "typebox";
import type { Server } from "../../../../core/tasks/server.ts";
import type { Clock } from "../../../../runtime/clock.ts";
import type { Cells } from "../../cells/hydrate-servers.ts";
import type { ApiEvents } from "../../events.ts";
import { callerOf, callOf } from "../../http/call.ts";
import { canonicalUuid } from "../../http/canonical-uuid.ts";
import type { Http } from "../../http/create-http.ts";
import { invalidField, unavailable } from "../../http/fault.ts";
import { Uuid } from "../../http/schema.ts";
import type { RequestsPort } from "../../ports.ts";
import type { NetworkRefresher } from "../neutron-ports/network-refresher.ts";
import type { ServerVolumes } from "../server-volumes/server-volumes.ts";
import { VolumeExtender } from "../server-volumes/volume-extender.ts";
import { type PluggedServer, passOnPlugged } from "./pass-on-plugged.ts";

export interface ExternalEventDeps {
  readonly store: Pick<RequestsPort, "requests">;
  readonly cells: Cells;
  /** Null without Neutron. */
  readonly refresher: NetworkRefresher | null;
  /** Null when servers have no volumes. */
  readonly volumes: ServerVolumes | null;
  readonly clock: Clock;
  readonly events: ApiEvents;
}

/** The names of events, each with the microversion from which on it is taken. */
const EVENT_NAMES: Readonly<Record<string, number>> = {
  "network-changed": 1,
  "network-vif-plugged": 1,
  "network-vif-unplugged": 1,
  "network-vif-deleted": 1,
  "volume-extended": 51,
  "power-update": 76,
  "accelerator-request-bound": 82,
  "volume-reimaged": 93,
};
/** Events that say nothing without a tag. */
const TAG_REQUIRED = ["volume-extended", "power-update", "accelerator-request-bound"];
const EVENTS_MAX = 1_000;

const Fields = {
  name: Type.String({ maxLength: 255 }),
  server_uuid: Uuid,
  tag: Type.Optional(Type.String({ maxLength: 255 })),
};
const Status = Type.Unsafe<string>({ type: "string", enum: ["failed", "completed", "in-progress"] });
const Body = Type.Object(
  {
    events: Type.Array(Type.Object({ ...Fields, status: Type.Optional(Status) }, { additionalProperties: false }), {
      minItems: 1,
      maxItems: EVENTS_MAX,
    }),
  },
  { additionalProperties: false },
);
const Answer = Type.Object({
  events: Type.Array(Type.Object({ ...Fields, status: Type.String(), code: Type.Integer() })),
});

/**
 * `/os-server-external-events`: events that Neutron, Cinder and other services report about servers. Each event is checked, answered with a code of
 * its own and logged. Those about ports that are connected at the destination of a live migration, and about boot volumes that Cinder has filled, are written into the server's cell. After those about changed
 * or deleted ports in Neutron, the server's record gets the present addresses; the sender does not wait for that.
 *
 * When a cell does not answer, the call is refused (503) after the events about servers of all other cells were taken: one call of Neutron has events about many
 * servers, and Neutron does not repeat it after such an answer. A sender that does so changes nothing by it.
 *
 * Source: Nova's api-ref, "Create external events".
 */
export function registerExternalEventRoutes(http: Http, deps: ExternalEventDeps): void {
  const { volumes } = deps;
  const extender = volumes === null ? null : new VolumeExtender({ ...deps, volumes });
  http.addHook("onClose", async () => extender?.stop());
  http.post(
    "/os-server-external-events",
    {
      config: { rule: "os-server-external-events:create" },
      schema: { body: Body, response: { 200: Answer, 207: Answer } },
    },
    async (request, reply) => {
      const call = callOf(request);
      const { minor } = call;
      const { events } = request.body;
      for (const { name } of events) refuseUnknownName(name, minor);
      const { found, silent } = await findServers(
        deps,
        events.map((event) => canonicalUuid(event.server_uuid) ?? ""),
      );
      const answers = events.map((event) => {
        const server = found.get(canonicalUuid(event.server_uuid) ?? "");
        const code = codeOf(event, server?.host);
        if (code === 200) deps.events.externalEvent(event, server?.host ?? "");
        return { ...event, status: code === 200 ? "completed" : "failed", code };
      });
      const deaf = await passOnPlugged(
        deps.cells,
        events.flatMap((event) => pluggedBy(event, found)),
      );
      // Nova does not take events about a server without a host. Berth answers the same, and brings one that is shelved and offloaded up to date.
      await deps.refresher?.hear(
        answers.filter(
          ({ code, server_uuid }) =>
            code === 200 ||
            (code === 422 && found.get(canonicalUuid(server_uuid) ?? "")?.status === "SHELVED_OFFLOADED"),
        ),
      );
      extender?.hear(extendedBy(answers), callerOf(call));
      const [cell] = [...silent, ...deaf];
      if (cell !== undefined)
        throw unavailable(`Cell ${cell}, where a server lives, does not answer. The events of other cells are taken.`);
      reply.code(answers.every(({ code }) => code === 200) ? 200 : 207);
      return { events: answers };
    },
  );
}

/** The volumes of servers that the events say have grown. */
const extendedBy = (
  answers: readonly {
    readonly name: string;
    readonly server_uuid: string;
    readonly tag?: string;
    readonly code: number;
  }[],
) =>
  answers
    .filter(({ name, code }) => name === "volume-extended" && code === 200)
    .map(({ server_uuid, tag = "" }) => ({ serverUuid: canonicalUuid(server_uuid) ?? "", volumeId: tag }));

/** The events whose tag is a port or a volume for which a conductor may wait. */
const AWAITED: Readonly<Record<string, "port" | "volume">> = {
  "network-vif-plugged": "port",
  "volume-reimaged": "volume",
};

/** Neutron names the port, and says when it could not connect it. Cinder names the volume. */
function pluggedBy(
  { name, server_uuid, tag = "", status }: Static<typeof Body>["events"][number],
  found: ReadonlyMap<string, FoundServer>,
): Parameters<typeof passOnPlugged>[1] {
  const [serverUuid, portId] = [canonicalUuid(server_uuid), canonicalUuid(tag)];
  const server = found.get(serverUuid ?? "");
  const of = AWAITED[name];
  if (of === undefined || serverUuid === null || portId === null || server?.plugged === undefined) return [];
  return [{ of, serverUuid, portId, isFailed: status === "failed", server: server.plugged }];
}

function refuseUnknownName(name: string, minor: number): void {
  const known = Object.keys(EVENT_NAMES).filter((one) => (EVENT_NAMES[one] ?? 0) <= minor);
  if (!known.includes(name)) throw invalidField("name", name, `It is not one of ${known.join(", ")}.`);
}

/** `host` is undefined for an unknown server, and null for one without a host. */
function codeOf(
  event: { readonly name: string; readonly tag?: string },
  host: string | null | undefined,
): 200 | 400 | 404 | 422 {
  if (host === undefined) return 404;
  if (TAG_REQUIRED.includes(event.name) && event.tag === undefined) return 400;
  return host === null ? 422 : 200;
}

/** A server, as far as its events depend on it. */
type FoundServer = Pick<Server, "host"> & Partial<Pick<Server, "status">> & { readonly plugged?: PluggedServer };

/** Finds living servers in their cells, all of which are asked at once. Servers of cells that do not answer (`silent`) are not found. */
async function findServers(
  { store, cells }: ExternalEventDeps,
  uuids: readonly string[],
): Promise<{ readonly found: ReadonlyMap<string, FoundServer>; readonly silent: readonly string[] }> {
  const found = new Map<string, FoundServer>();
  const silent: string[] = [];
  const records = (await store.requests([...new Set(uuids)])).filter(
    ({ state }) => state !== "cancelled" && state !== "deleted",
  );
  for (const { serverUuid } of records) found.set(serverUuid, { host: null });
  const ask = async (cellName: string, ofCell: readonly string[]) => {
    const answer = await cells.get(cellName)?.servers(ofCell);
    if (answer === undefined || answer.kind === "unreachable") {
      silent.push(cellName);
      for (const serverUuid of ofCell) found.delete(serverUuid);
      return;
    }
    for (const { uuid, host, status, taskState } of answer.value)
      found.set(uuid, { host, status, plugged: { cellName, taskState } });
  };
  await Promise.all(
    [...Map.groupBy(records, ({ cell }) => cell)].map(([cellName, ofCell]) =>
      cellName === null
        ? null
        : ask(
            cellName,
            ofCell.map(({ serverUuid }) => serverUuid),
          ),
    ),
  );
  return { found, silent };
}
