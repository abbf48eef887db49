import { randomUUID } from "node:crypto";
import type { ServerDetail } from "../../services/api/compute/servers/server-schemas.ts";
import type { FakeScript } from "../../services/compute-agent/fake-script.ts";
import { FAKE_METADATA_KEY } from "../../services/compute-agent/fake-script.ts";
import { eventually } from "../rigs/eventually.ts";

/** From this microversion on, the events of an action show reasons in `details`. */
const MICROVERSION = "compute 2.84";
const PATIENT = { everyMs: 50, withinMs: 90_000, isLasting: true };
const BUILD_EVENT = "compute__do_build_and_run_instance";

/** One attempt to build a server. */
export interface ShownAttempt {
  readonly host: string | null;
  readonly result: string | null;
  readonly details: string | null;
}

interface Action {
  readonly action: string;
  readonly request_id: string;
  readonly message: string | null;
  readonly events?: readonly (ShownAttempt & { readonly event: string })[];
}

/** The Compute API as clients use it, with only HTTP and JSON. */
export class ComputeApi {
  readonly #url: () => string;

  constructor(url: () => string) {
    this.#url = url;
  }

  /** Makes a flavor of one VCPU and returns its id. */
  async flavor(extraSpecs: Readonly<Record<string, string>> = {}): Promise<string> {
    const id = `flavor-${randomUUID()}`;
    await this.#expect(200, "POST", "/flavors", { flavor: { id, name: id, vcpus: 1, ram: 512, disk: 1 } });
    await this.#expect(200, "POST", `/flavors/${id}/os-extra_specs`, { extra_specs: extraSpecs });
    return id;
  }

  /** Requests a server and resolves with its UUID once it is accepted. `fake` sets the driver's behaviour for it. */
  async boot(server: {
    readonly flavor: string;
    readonly name?: string;
    readonly fake?: FakeScript;
    readonly zone?: string;
    readonly group?: string;
    readonly image?: string;
  }): Promise<string> {
    const { flavor: flavorRef, name = "e2e", fake, zone, group, image: imageRef = "" } = server;
    const metadata = fake === undefined ? {} : { [FAKE_METADATA_KEY]: JSON.stringify(fake) };
    const place = zone === undefined ? {} : { availability_zone: zone };
    const hints = group === undefined ? {} : { "os:scheduler_hints": { group } };
    const body = { ...hints, server: { name, flavorRef, imageRef, networks: "none", metadata, ...place } };
    return (await this.#expect<{ server: { id: string } }>(202, "POST", "/servers", body)).server.id;
  }

  bootMany(count: number, server: Parameters<ComputeApi["boot"]>[0]): Promise<readonly string[]> {
    return Promise.all(Array.from({ length: count }, () => this.boot(server)));
  }

  /** Returns null when there is no such server. */
  async show(uuid: string): Promise<ServerDetail | null> {
    const answer = await this.#look(`/servers/${uuid}`);
    if (answer.status === 404) return null;
    return (await read<{ server: ServerDetail }>(answer, 200)).server;
  }

  /** All servers, newest first, or those whose names contain this one. */
  async list(name?: string): Promise<readonly ServerDetail[]> {
    const named = name === undefined ? "" : `&name=${encodeURIComponent(name)}`;
    return (await read<{ servers: ServerDetail[] }>(await this.#look(`/servers/detail?limit=1000${named}`), 200))
      .servers;
  }

  async delete(uuid: string): Promise<void> {
    await this.#expect(204, "DELETE", `/servers/${uuid}`);
  }

  /** Does an action to a server, waits until the server is in this status without a task, and resolves with its host. */
  async changed(uuid: string, action: string, status: string, value: unknown = null): Promise<string> {
    const answer = await this.call("POST", `/servers/${uuid}/action`, { [action]: value });
    if (answer.status >= 300) throw new Error(`${action}: ${answer.status} ${await answer.text()}`);
    const ended = async () => {
      const shown = await this.show(uuid);
      return shown?.status === status && shown["OS-EXT-STS:task_state"] === null && shown;
    };
    return (await eventually(`the end of ${action}`, ended, PATIENT))["OS-EXT-SRV-ATTR:host"] ?? "";
  }

  /**
   * Resolves when each of the servers is ACTIVE or in ERROR, and returns them in the order of their UUIDs. Their common name, if they have one, spares the api
   * the servers of other names.
   */
  async ended(uuids: readonly string[], name?: string): Promise<readonly ServerDetail[]> {
    const ending = async () => {
      const listed = new Map((await this.list(name)).map((server) => [server.id, server]));
      const servers = uuids.flatMap((uuid) => listed.get(uuid) ?? []);
      const done = servers.filter(({ status }) => status === "ACTIVE" || status === "ERROR");
      return done.length === uuids.length ? done : null;
    };
    return eventually(`${uuids.length} servers to be ACTIVE or ERROR`, ending, PATIENT);
  }

  async endedOne(uuid: string): Promise<ServerDetail> {
    const [server] = await this.ended([uuid]);
    if (server === undefined) throw new Error("no server");
    return server;
  }

  async gone(uuids: readonly string[]): Promise<void> {
    const left = async () => (await Promise.all(uuids.map((uuid) => this.show(uuid)))).every((one) => one === null);
    await eventually(`${uuids.length} servers to be gone`, left, PATIENT);
  }

  /** The attempts to build the server according to its instance actions, oldest first. */
  async attempts(uuid: string): Promise<readonly ShownAttempt[]> {
    const { events = [] } = await this.action(uuid, "create");
    return events
      .filter(({ event }) => event === BUILD_EVENT)
      .map(({ host, result, details }) => ({ host, result, details }))
      .reverse();
  }

  async action(uuid: string, name: "create" | "delete"): Promise<Action> {
    const path = `/servers/${uuid}/os-instance-actions`;
    const { instanceActions } = await this.#expect<{ instanceActions: Action[] }>(200, "GET", path);
    const found = instanceActions.find(({ action }) => action === name);
    if (found === undefined) throw new Error(`server ${uuid} has no action ${name}`);
    return (await this.#expect<{ instanceAction: Action }>(200, "GET", `${path}/${found.request_id}`)).instanceAction;
  }

  call(method: "GET" | "POST" | "PUT" | "DELETE", path: string, body?: unknown): Promise<Response> {
    return fetch(`${this.#url()}/v2.1${path}`, {
      method,
      headers: { "openstack-api-version": MICROVERSION, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(60_000),
    });
  }

  /** Reads, and asks again as long as the api is busy: a busy machine may keep it from its database for seconds. */
  #look(path: string): Promise<Response> {
    const isAnswered = async () => {
      const answer = await this.call("GET", path);
      return answer.status !== 503 && answer;
    };
    return eventually(`an answer to GET ${path} that is not 503`, isAnswered, PATIENT);
  }

  async #expect<Answer>(
    status: number,
    method: "GET" | "POST" | "PUT" | "DELETE",
    path: string,
    body?: unknown,
  ): Promise<Answer> {
    return read<Answer>(await this.call(method, path, body), status);
  }
}

async function read<Answer>(answer: Response, status: number): Promise<Answer> {
  const text = await answer.text();
  if (answer.status !== status) throw new Error(`${answer.url}: ${answer.status} instead of ${status}: ${text}`);
  return (text === "" ? null : JSON.parse(text)) as Answer;
}
