import type { CpuProfile } from "./cpu-profile.ts";

const CALL_MS = 60_000;
const SAMPLE_US = 500;

interface Answer {
  readonly id?: number;
  readonly result?: unknown;
  readonly error?: { readonly message: string };
}

/** A connection to the inspector of a Node process that was started with `--inspect`. */
export class InspectorClient {
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>();
  #calls = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener("message", ({ data }) => this.#hear(JSON.parse(String(data)) as Answer));
    socket.addEventListener("close", () => {
      for (const { reject } of this.#waiting.values()) reject(new Error("the inspector closed the connection"));
      this.#waiting.clear();
    });
  }

  /** Connects to the address that Node prints when it starts. */
  static async connect(url: string): Promise<InspectorClient> {
    const socket = new WebSocket(url);
    await new Promise<void>((resolve, reject) => {
      socket.addEventListener("open", () => resolve());
      socket.addEventListener("error", () => reject(new Error(`the inspector at ${url} does not answer`)));
    });
    return new InspectorClient(socket);
  }

  async startProfile(): Promise<void> {
    await this.#call("Profiler.enable");
    await this.#call("Profiler.setSamplingInterval", { interval: SAMPLE_US });
    await this.#call("Profiler.start");
  }

  /** Ends the profile that was started, and resolves with it. */
  async stopProfile(): Promise<CpuProfile> {
    const { profile } = (await this.#call("Profiler.stop")) as { readonly profile: CpuProfile };
    return profile;
  }

  close(): void {
    this.#socket.close();
  }

  async #call(method: string, params: object = {}): Promise<unknown> {
    this.#calls += 1;
    const id = this.#calls;
    const waiting = Promise.withResolvers<unknown>();
    this.#waiting.set(id, waiting);
    const timer = setTimeout(() => waiting.reject(new Error(`${method}: no answer within ${CALL_MS} ms`)), CALL_MS);
    this.#socket.send(JSON.stringify({ id, method, params }));
    return waiting.promise.finally(() => clearTimeout(timer));
  }

  #hear({ id, result, error }: Answer): void {
    if (id === undefined) return;
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error === undefined) waiting?.resolve(result);
    else waiting?.reject(new Error(error.message));
  }
}
