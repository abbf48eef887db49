import { Agent, request } from "undici";
import type { ChaosHistory } from "./chaos-history.ts";
import type { ClientOperation } from "./history-line.ts";

/** The outcome of a request, in the words of the history. */
export type RequestOutcome =
  | { readonly kind: "ok"; readonly status: number; readonly body: unknown }
  | { readonly kind: "refused"; readonly status: number; readonly reason: string }
  | { readonly kind: "unknown"; readonly status: number | null; readonly reason: string };

interface Call {
  readonly who: string;
  readonly op: ClientOperation;
  readonly method: "GET" | "POST" | "DELETE";
  /** The path after `/v2.1`. */
  readonly path: string;
  readonly server?: string;
  readonly action?: string;
  readonly body?: unknown;
}

/** From this microversion on, `details` of an action's events shows reasons. */
const MICROVERSION = "compute 2.84";
const REASON_CHARS_MAX = 300;

/**
 * The public API of a cloud as clients see it. Each request goes to one of the cloud's apis, and each request and answer is recorded in the
 * history.
 */
export class ChaosApi {
  readonly #urls: () => readonly string[];
  readonly #history: ChaosHistory;
  readonly #timeoutMs: number;
  readonly #signal: AbortSignal | undefined;
  // No pipelining: a POST must not be sent again when its connection breaks.
  readonly #agent = new Agent({ pipelining: 1, connections: 256, connectTimeout: 5_000 });
  #requests = 0;
  #turn = 0;

  constructor(options: {
    readonly urls: () => readonly string[];
    readonly history: ChaosHistory;
    readonly timeoutMs: number;
    /** Aborts the request under way and all later ones. */
    readonly signal?: AbortSignal;
  }) {
    this.#urls = options.urls;
    this.#history = options.history;
    this.#timeoutMs = options.timeoutMs;
    this.#signal = options.signal;
  }

  /** Sends a request, and records it and its outcome under the same `id`. */
  async ask(call: Call): Promise<RequestOutcome & { readonly id: number }> {
    this.#requests += 1;
    const id = this.#requests;
    const line = { who: call.who, op: call.op, id, ...(call.server === undefined ? {} : { server: call.server }) };
    this.#history.write({ ...line, ...(call.action === undefined ? {} : { action: call.action }), what: "invoke" });
    const begunMs = this.#history.now();
    const outcome = await this.send(call);
    const ms = Math.round((this.#history.now() - begunMs) * 10) / 10;
    const status = outcome.status === null ? {} : { status: outcome.status };
    const created = call.op === "create" ? uuidOf(outcome) : undefined;
    const server = created === undefined ? {} : { server: created };
    const reason = outcome.kind === "ok" ? {} : { reason: outcome.reason };
    const twice = call.op === "list" ? namedTwice(outcome) : [];
    const doubled = twice.length === 0 ? {} : { twice };
    this.#history.write({ ...line, ...server, what: outcome.kind, ms, ...status, ...reason, ...doubled });
    return { ...outcome, id };
  }

  /** Sends a request without recording it in the history. */
  async send({ method, path, body }: Pick<Call, "method" | "path" | "body">): Promise<RequestOutcome> {
    const urls = this.#urls();
    this.#turn += 1;
    try {
      const answer = await request(`${urls[this.#turn % urls.length]}/v2.1${path}`, {
        method,
        dispatcher: this.#agent,
        headers: { "openstack-api-version": MICROVERSION, "content-type": "application/json" },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal: AbortSignal.any([AbortSignal.timeout(this.#timeoutMs), ...(this.#signal ? [this.#signal] : [])]),
      });
      const text = await answer.body.text();
      return outcomeOf(method, answer.statusCode, text);
    } catch (error) {
      const { code, message } = error as { code?: string; message: string };
      // No process listens there, so the request cannot have been received.
      if (code === "ECONNREFUSED") return { kind: "refused", status: 0, reason: message || code };
      return { kind: "unknown", status: null, reason: message };
    }
  }

  /** Throws the signal's reason when no more requests may be sent. */
  throwIfBrokenOff(): void {
    this.#signal?.throwIfAborted();
  }

  close(): Promise<void> {
    return this.#agent.destroy();
  }
}

function outcomeOf(method: string, status: number, text: string): RequestOutcome {
  if (status >= 200 && status < 300) return { kind: "ok", status, body: text === "" ? null : JSON.parse(text) };
  const reason = text.slice(0, REASON_CHARS_MAX);
  // An api that failed before it could answer may have changed its database already.
  return status >= 500 && method !== "GET" ? { kind: "unknown", status, reason } : { kind: "refused", status, reason };
}

function uuidOf(outcome: RequestOutcome): string | undefined {
  return outcome.kind === "ok" ? (outcome.body as { server?: { id?: string } }).server?.id : undefined;
}

/** UUIDs that a list contains more than once. */
function namedTwice(outcome: RequestOutcome): readonly string[] {
  if (outcome.kind !== "ok") return [];
  const { servers = [] } = outcome.body as { readonly servers?: readonly { readonly id: string }[] };
  const seen = new Set<string>();
  const twice = new Set<string>();
  for (const { id } of servers) (seen.has(id) ? twice : seen).add(id);
  return [...twice];
}
