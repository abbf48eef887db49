import { setTimeout as delay } from "node:timers/promises";
import type { ReplayFlavor } from "./flavor-of-task.ts";
import type { HttpAnswer, HttpCall, HttpSender } from "./pool-sender.ts";

/** The API refused a call, or its answer had an unexpected form. */
export class ComputeError extends Error {
  readonly code = "refused";
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.name = "ComputeError";
    this.status = status;
  }
}

export interface ShownServer {
  readonly id: string;
  readonly status: string;
  readonly launchedAtMs: number | null;
  readonly fault: string | null;
}

/** Nova's name for one try to build a server on one host. */
const BUILD_EVENT = "compute__do_build_and_run_instance";

/** Maximum number of tries of a call that is answered with 503. */
const TRIES_MAX = 60;

/** The public Compute API over HTTP, as far as a replay needs it. */
export class ComputeClient {
  readonly #sender: HttpSender;
  readonly #putOffMs: number;

  /** The client takes over the sender. `putOffMs` is the pause after an answer of 503. */
  constructor(sender: HttpSender, putOffMs = 500) {
    this.#sender = sender;
    this.#putOffMs = putOffMs;
  }

  /** Creates the flavor with its extra specs. Of an existing flavor, only the extra specs are set. */
  async createFlavor(flavor: ReplayFlavor): Promise<void> {
    const body = { flavor: { id: flavor.id, name: flavor.id, vcpus: flavor.vcpus, ram: flavor.memoryMib, disk: 0 } };
    const created = await this.#insist("POST", "/v2.1/flavors", body);
    if (created.status !== 200 && created.status !== 409) throw refusal("flavor", created);
    const specs = await this.#insist("POST", `/v2.1/flavors/${encodeURIComponent(flavor.id)}/os-extra_specs`, {
      extra_specs: flavor.extraSpecs,
    });
    if (specs.status !== 200) throw refusal("extra specs", specs);
  }

  /** Resolves with the UUID of the accepted server. Throws a ComputeError when the request is refused. */
  async createServer(server: {
    readonly name: string;
    readonly flavorId: string;
    readonly metadata: Readonly<Record<string, string>>;
  }): Promise<string> {
    const answer = await this.#send("POST", "/v2.1/servers", {
      server: {
        name: server.name,
        flavorRef: server.flavorId,
        imageRef: "",
        networks: "none",
        metadata: server.metadata,
      },
    });
    if (answer.status !== 202) throw refusal("server", answer);
    return (JSON.parse(answer.text) as { server: { id: string } }).server.id;
  }

  async deleteServer(uuid: string): Promise<void> {
    const answer = await this.#insist("DELETE", `/v2.1/servers/${uuid}`);
    if (answer.status !== 204) throw refusal("delete", answer);
  }

  /** Resolves with null when the server does not exist. */
  async showServer(uuid: string): Promise<ShownServer | null> {
    const answer = await this.#insist("GET", `/v2.1/servers/${uuid}`);
    if (answer.status === 404) return null;
    if (answer.status !== 200) throw refusal("server", answer);
    return shown((JSON.parse(answer.text) as { server: ServerDocument }).server);
  }

  /** Resolves with the number of failed build attempts of the server. */
  async failedBuilds(uuid: string): Promise<number> {
    const path = `/v2.1/servers/${uuid}/os-instance-actions`;
    const list = await this.#insist("GET", path);
    // The server was deleted in the meantime.
    if (list.status === 404) return 0;
    if (list.status !== 200) throw refusal("instance actions", list);
    const { instanceActions } = JSON.parse(list.text) as { instanceActions: { action: string; request_id: string }[] };
    const created = instanceActions.find(({ action }) => action === "create");
    if (created === undefined) return 0;
    const answer = await this.#insist("GET", `${path}/${created.request_id}`);
    if (answer.status === 404) return 0;
    if (answer.status !== 200) throw refusal("instance action", answer);
    const { instanceAction } = JSON.parse(answer.text) as {
      instanceAction: { events?: { event: string; result: string | null }[] };
    };
    return (instanceAction.events ?? []).filter(({ event, result }) => event === BUILD_EVENT && result === "Error")
      .length;
  }

  close(): Promise<void> {
    return this.#sender.close();
  }

  /** Makes a call that may be repeated, and repeats it while a cell or a database does not answer. */
  async #insist(method: HttpCall["method"], path: string, body?: unknown): Promise<HttpAnswer> {
    for (let tries = 1; ; tries += 1) {
      const answer = await this.#send(method, path, body);
      if (answer.status !== 503 || tries === TRIES_MAX) return answer;
      await delay(this.#putOffMs);
    }
  }

  #send(method: HttpCall["method"], path: string, body?: unknown): Promise<HttpAnswer> {
    return this.#sender.send({ method, path, body: body === undefined ? null : JSON.stringify(body) });
  }
}

interface ServerDocument {
  readonly id: string;
  readonly status: string;
  readonly fault?: { readonly message: string };
  readonly "OS-SRV-USG:launched_at"?: string | null;
}

function shown(server: ServerDocument): ShownServer {
  const launchedAt = server["OS-SRV-USG:launched_at"];
  return {
    id: server.id,
    status: server.status,
    launchedAtMs: launchedAt == null ? null : Date.parse(`${launchedAt}Z`),
    fault: server.fault?.message ?? null,
  };
}

function refusal(what: string, answer: { readonly status: number; readonly text: string }): ComputeError {
  return new ComputeError(answer.status, `${what} refused with ${answer.status}: ${answer.text.slice(0, 300)}`);
}
