import { createWriteStream } from "node:fs";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { Agent, type Dispatcher, request } from "undici";
import { LxdError } from "./lxd-error.ts";

/** An operation that LXD carries out in the background. */
export interface LxdOperation {
  readonly id: string;
  /** Below 200 the operation has not ended yet; 200 is success, and 400 and more are failures. */
  readonly status_code: number;
  readonly err: string;
  /** Paths of the objects that the operation changes, by kind. */
  readonly resources: Readonly<Record<string, readonly string[]>> | null;
  readonly metadata: unknown;
}

interface LxdAnswer {
  readonly type: "sync" | "async" | "error";
  readonly error: string;
  readonly error_code: number;
  readonly metadata: unknown;
}

interface LxdCall {
  readonly method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly body?: object;
  readonly signal?: AbortSignal | undefined;
}

/** A call that LXD answers at once. */
const CALL_MS_MAX = 30_000;
/** How long one wait for an operation lasts at most, before it is asked again. */
const WAIT_SECONDS = 20;
/** An operation that takes more waits has failed. */
const WAITS_MAX = 180;
const ANSWER_BYTES_MAX = 64 * 1_048_576;
const NOT_FOUND = 404;
const FIRST_END_CODE = 200;
const FIRST_FAILURE_CODE = 400;

/**
 * A client of LXD's REST API over its unix socket. Errors are `LxdError`s. Source: LXD's documentation, "REST API".
 */
export class LxdClient {
  readonly #agent: Agent;

  constructor(socketPath: string) {
    this.#agent = new Agent({ connect: { socketPath }, connections: 64, pipelining: 1, connectTimeout: 5_000 });
  }

  /** Makes a call that ends at once, and returns its answer. */
  async call(path: string, call: LxdCall = {}): Promise<unknown> {
    const answer = await this.#ask(path, call);
    return answer.metadata;
  }

  /** Makes a call that begins an operation. */
  async begin(path: string, call: Omit<LxdCall, "signal">): Promise<LxdOperation> {
    return (await this.call(path, call)) as LxdOperation;
  }

  /** Makes a call that begins an operation, and waits until the operation has ended (see `waitFor`). */
  async run(path: string, { signal, ...call }: LxdCall): Promise<LxdOperation> {
    return this.waitFor(await this.begin(path, call), signal);
  }

  /** Sends an image as a file, and returns its fingerprint. */
  async importImage(file: Readable, bytes: number, signal: AbortSignal): Promise<string> {
    const headers = { "content-type": "application/octet-stream", "content-length": String(bytes) };
    const begun = await this.#ask("/1.0/images", { method: "POST", raw: { body: file, headers }, signal });
    const { metadata } = await this.waitFor(begun.metadata as LxdOperation, signal);
    return (metadata as { readonly fingerprint: string }).fingerprint;
  }

  /** Writes the answer of a call into a new file. Rejects with the signal's reason when that is raised; then the file is incomplete. */
  async download(path: string, file: string, signal: AbortSignal): Promise<void> {
    const answer = await this.#send(path, { signal, deadlineMs: IMAGE_MS_MAX });
    if (answer.statusCode >= FIRST_FAILURE_CODE) throw errorOf(answer.statusCode, await bytesOf(answer), path);
    try {
      await pipeline(answer.body, createWriteStream(file, { flags: "wx", mode: 0o600 }), { signal });
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      throw new LxdError("refused", `an image cannot be written: ${messageOf(error)}`, { cause: error });
    }
  }

  /**
   * Waits until an operation has ended. Throws an LxdError with the reason of one that failed. When the signal is raised, LXD is asked to cancel
   * the operation. Many operations cannot be cancelled, so this waits for their end, too, before it throws the signal's reason.
   */
  async waitFor({ id }: Pick<LxdOperation, "id">, signal?: AbortSignal): Promise<LxdOperation> {
    try {
      return await this.#ended(id, signal);
    } catch (error) {
      if (signal?.aborted !== true) throw error;
      await this.#ask(`/1.0/operations/${id}`, { method: "DELETE" }).catch(() => undefined);
      await this.#ended(id).catch(() => undefined);
      throw signal.reason;
    }
  }

  async #ended(id: string, signal?: AbortSignal): Promise<LxdOperation> {
    for (let waits = 0; waits < WAITS_MAX; waits += 1) {
      const path = `/1.0/operations/${id}/wait?timeout=${WAIT_SECONDS}`;
      const operation = (await this.#ask(path, { signal })).metadata as LxdOperation;
      if (operation.status_code >= FIRST_FAILURE_CODE) throw new LxdError("refused", operation.err);
      if (operation.status_code >= FIRST_END_CODE) return operation;
    }
    throw new LxdError("unavailable", `LXD has not ended an operation within ${WAITS_MAX * WAIT_SECONDS} s`);
  }

  /** Breaks off all calls. */
  close(): void {
    this.#agent.destroy().catch(() => undefined);
  }

  async #ask(path: string, call: LxdCall & { readonly raw?: RawBody }): Promise<LxdAnswer> {
    const answer = await this.#send(path, call);
    const bytes = await bytesOf(answer);
    if (answer.statusCode >= FIRST_FAILURE_CODE) throw errorOf(answer.statusCode, bytes, path);
    return JSON.parse(bytes.toString("utf8")) as LxdAnswer;
  }

  async #send(
    path: string,
    call: LxdCall & { readonly raw?: RawBody; readonly deadlineMs?: number },
  ): Promise<Dispatcher.ResponseData> {
    const { method = "GET", body, raw, signal } = call;
    const { deadlineMs = raw === undefined ? CALL_MS_MAX : IMAGE_MS_MAX } = call;
    const deadline = AbortSignal.timeout(deadlineMs);
    try {
      return await request(`http://lxd${path}`, {
        method,
        dispatcher: this.#agent,
        signal: signal === undefined ? deadline : AbortSignal.any([signal, deadline]),
        ...(raw ?? (body === undefined ? {} : { body: JSON.stringify(body), headers: JSON_TYPE })),
      });
    } catch (error) {
      if (signal?.aborted === true) throw signal.reason;
      throw new LxdError("unavailable", `LXD does not answer: ${messageOf(error)}`, { cause: error });
    }
  }
}

interface RawBody {
  readonly body: Readable;
  readonly headers: Readonly<Record<string, string>>;
}

/** A call that carries an image. */
const IMAGE_MS_MAX = 3_600_000;
const JSON_TYPE = { "content-type": "application/json" };

async function bytesOf({ body }: Dispatcher.ResponseData): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > ANSWER_BYTES_MAX) throw new LxdError("unavailable", "LXD's answer is too long");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function errorOf(status: number, bytes: Buffer, path: string): LxdError {
  let reason = bytes.toString("utf8").slice(0, 500);
  try {
    reason = (JSON.parse(reason) as LxdAnswer).error;
  } catch {
    // The answer is not JSON, for example because a proxy sent it. Its text is the reason.
  }
  const message = `LXD refuses ${path.split("?", 1)[0]}: ${reason}`;
  return new LxdError(status === NOT_FOUND ? "not-found" : "refused", message);
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
