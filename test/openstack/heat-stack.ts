import { eventually } from "../rigs/eventually.ts";
import type { RealCloud } from "./real-cloud.ts";

/** A resource of a stack, also one of a nested stack. */
export interface HeatResource {
  readonly resource_name: string;
  readonly resource_type: string;
  readonly resource_status: string;
  readonly resource_status_reason: string;
  readonly physical_resource_id: string;
  readonly updated_time: string;
}

/** A stack of a real Heat. Each method waits until Heat has ended what it asks for, and throws with Heat's words if that failed. */
export class HeatStack {
  readonly #cloud: RealCloud;
  readonly #url: string;
  readonly #name: string;
  #id = "";

  /** `url`: Heat's, with the project. */
  constructor(cloud: RealCloud, url: string, name: string) {
    this.#cloud = cloud;
    this.#url = `${url}/stacks`;
    this.#name = name;
  }

  async create(template: unknown): Promise<readonly HeatResource[]> {
    const { stack } = await this.#cloud.call("POST", this.#url, { stack_name: this.#name, template });
    this.#id = stack.id;
    return this.#settle("CREATE");
  }

  async update(template: unknown): Promise<readonly HeatResource[]> {
    await this.#cloud.call("PUT", this.#path, { template });
    return this.#settle("UPDATE");
  }

  async act(action: "suspend" | "resume" | "check"): Promise<readonly HeatResource[]> {
    await this.#cloud.call("POST", `${this.#path}/actions`, { [action]: null });
    return this.#settle(action.toUpperCase());
  }

  /** Makes a snapshot of the stack and returns its id. */
  async snapshot(): Promise<string> {
    const { id } = await this.#cloud.call("POST", `${this.#path}/snapshots`, { name: "snapshot" });
    await this.#settle("SNAPSHOT");
    return id;
  }

  async restore(snapshot: string): Promise<readonly HeatResource[]> {
    await this.#cloud.call("POST", `${this.#path}/snapshots/${snapshot}/restore`);
    return this.#settle("RESTORE");
  }

  /** Returns when the stack is gone. */
  async delete(): Promise<void> {
    await this.#cloud.call("DELETE", this.#path);
    await this.#settle("DELETE");
  }

  async resources(): Promise<readonly HeatResource[]> {
    return (await this.#cloud.call("GET", `${this.#path}/resources?nested_depth=2`)).resources;
  }

  async outputs(): Promise<Readonly<Record<string, unknown>>> {
    const { outputs } = (await this.#cloud.call("GET", this.#path)).stack;
    return Object.fromEntries(
      outputs.map((one: { readonly output_key: string; readonly output_value: unknown }) => [
        one.output_key,
        one.output_value,
      ]),
    );
  }

  get #path(): string {
    return `${this.#url}/${this.#name}/${this.#id}`;
  }

  async #settle(action: string): Promise<readonly HeatResource[]> {
    let status = "";
    let reason = "";
    await eventually(
      `the ${action} of stack ${this.#name} has ended`,
      async () => {
        const { stack } = await this.#cloud.call("GET", this.#path);
        status = stack.stack_status;
        reason = stack.stack_status_reason;
        return status === `${action}_COMPLETE` || status === `${action}_FAILED`;
      },
      { everyMs: 3_000, withinMs: 1_800_000 },
    );
    if (status === "DELETE_COMPLETE") return [];
    const resources = await this.resources();
    if (status.endsWith("_COMPLETE")) return resources;
    const failed = resources.filter(({ resource_status }) => resource_status.endsWith("_FAILED"));
    throw new Error(
      [`${status}: ${reason}`, ...failed.map((one) => `${one.resource_name}: ${one.resource_status_reason}`)].join(
        "\n",
      ),
    );
  }
}
