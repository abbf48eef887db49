import type { Registry } from "prom-client";
import { withDeadline } from "../../../runtime/deadline.ts";
import { metricsText } from "../../../runtime/metrics-text.ts";
import { readinessText } from "../../../runtime/probes.ts";
import type { Http } from "./create-http.ts";

const PING_MS_MAX = 2_000;

export interface Probed {
  /** Null when /metrics is served elsewhere. */
  readonly registry: Registry | null;
  /** Returns false while the service starts or closes. */
  readonly isServing: () => boolean;
  /** Resolves when the API database answers. Without the database, no request can be accepted. */
  readonly ping: () => Promise<void>;
  /** Returns further lines for the answer of `/readyz`. */
  readonly remarks?: () => readonly string[];
}

/** Registers `/healthz`, `/readyz` and, unless metrics have a separate address, `/metrics`, as on every service. */
export function registerProbes(http: Http, probed: Probed): void {
  http.get("/healthz", async (_request, reply) => reply.type("text/plain").send("ok\n"));

  http.get("/readyz", async (_request, reply) => {
    const ready = probed.isServing() && (await answers(probed.ping));
    return reply
      .code(ready ? 200 : 503)
      .type("text/plain")
      .send(readinessText(ready, probed.remarks?.() ?? []));
  });

  const { registry } = probed;
  if (registry === null) return;
  http.get("/metrics", async (request, reply) => {
    const { type, body } = await metricsText(registry, request.headers.accept);
    return reply.type(type).send(body);
  });
}

async function answers(ping: () => Promise<void>): Promise<boolean> {
  try {
    await withDeadline(ping(), PING_MS_MAX, "the API database");
    return true;
  } catch {
    return false;
  }
}
