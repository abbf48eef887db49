import type { ServerResponse } from "node:http";
import { Type } from "typebox";
import type { Http } from "../http/create-http.ts";
import { badRequest, notFound, unavailable } from "../http/fault.ts";
import type { CellPort } from "../ports.ts";
import type { FaultPanel } from "./fault-panel.ts";
import type { LiveSink, LiveStream } from "./live-stream.ts";
import { readTree } from "./read-tree.ts";

export interface LiveRouteDeps {
  readonly stream: LiveStream;
  readonly ports: readonly CellPort[];
  readonly faults: FaultPanel | null;
}

const HostParams = Type.Object({ host: Type.String({ minLength: 1, maxLength: 255 }) });
const Name = Type.String({ minLength: 1, maxLength: 255 });
const FaultBody = Type.Object(
  {
    /** The share of builds that fail, and how long a build takes. Both together. */
    fail_share: Type.Optional(Type.Number({ minimum: 0, maximum: 1 })),
    build_ms: Type.Optional(Type.Integer({ minimum: 0, maximum: 60_000 })),
    /** The target that is broken or healed; `broken` says which of the two. */
    host: Type.Optional(Name),
    conductor: Type.Optional(Name),
    cell: Type.Optional(Name),
    broken: Type.Optional(Type.Boolean()),
  },
  { additionalProperties: false },
);

/**
 * Registers `/live` (the picture and its changes, as server-sent events), `/live/picture` (the same once), `/live/hosts/{host}` (its tree of
 * providers), and where a fault panel is given `/faults`. Admins only.
 */
export function registerLiveRoutes(http: Http, { stream, ports, faults }: LiveRouteDeps): void {
  http.get("/live", { config: { rule: "berth:live" } }, (request, reply) => {
    const lastId = request.headers["last-event-id"];
    if (request.deadline !== null) clearTimeout(request.deadline);
    const { raw } = reply;
    const leave = stream.watch(sinkOf(raw), typeof lastId === "string" ? lastId : null);
    if (leave === null) throw unavailable("Too many dashboards are open on this api; close one of them.");
    raw.once("close", leave);
    reply.hijack();
  });

  http.get("/live/picture", { config: { rule: "berth:live" } }, async () => {
    return stream.picture();
  });

  const ofHost = { config: { rule: "berth:live" }, schema: { params: HostParams } };
  http.get("/live/hosts/:host", ofHost, async (request) => {
    const { host } = request.params;
    const tree = ports.map((port) => readTree(port, host)).find((one) => one !== null);
    if (tree === undefined) throw notFound(`Host ${host} is in no cell's ledger.`);
    return tree;
  });

  if (faults !== null) registerFaultRoutes(http, faults);
}

function registerFaultRoutes(http: Http, faults: FaultPanel): void {
  const inject = { config: { rule: "berth:faults" }, schema: { body: FaultBody } };
  http.put("/faults", inject, async (request) => {
    const { fail_share: failShare, build_ms: buildMs, broken, ...named } = request.body;
    const [target, ...more] = Object.entries(named) as ["host" | "conductor" | "cell", string][];
    if (failShare !== undefined && buildMs !== undefined && target === undefined && broken === undefined)
      await faults.change({ kind: "builds", failShare, buildMs });
    else if (
      target !== undefined &&
      more.length === 0 &&
      broken !== undefined &&
      (failShare ?? buildMs) === undefined
    ) {
      const [kind, name] = target;
      if (!(await faults.change({ kind, name, broken }))) throw notFound(`There is no ${kind} ${name} here.`);
    } else throw badRequest("Give fail_share and build_ms, or one of host, conductor and cell together with broken.");
    return faults.state();
  });

  http.delete("/faults", { config: { rule: "berth:faults" } }, async () => {
    await faults.heal();
    return faults.state();
  });
}

/** The head is sent with the first event. */
function sinkOf(raw: ServerResponse): LiveSink {
  return {
    get unsentBytes() {
      return raw.writableLength;
    },
    send(text) {
      if (raw.destroyed) return;
      if (!raw.headersSent)
        raw.writeHead(200, {
          "content-type": "text/event-stream; charset=utf-8",
          "cache-control": "no-store",
          "x-content-type-options": "nosniff",
          "x-accel-buffering": "no",
        });
      raw.write(text);
    },
    drop: () => raw.destroy(),
  };
}
