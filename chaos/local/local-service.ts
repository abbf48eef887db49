import type { HostPort } from "../../runtime/setting-kinds.ts";
import type { Part, Role } from "../chaos-cloud.ts";
import { ServiceProcess, type ServiceSpec } from "./service-process.ts";

/** One of Berth's services in a local cloud. */
export class LocalService extends ServiceProcess implements Part {
  readonly role: Role;
  readonly cell: string | null;
  #note = "";

  constructor(spec: ServiceSpec & { readonly role: Role; readonly cell: string | null }) {
    super(spec);
    this.role = spec.role;
    this.cell = spec.cell;
  }

  override async start(): Promise<string> {
    this.#note = await super.start();
    return this.#note;
  }

  /** Address of the probes, for services that have a separate port for them; null for others and before the start. */
  get probes(): HostPort | null {
    const [, host, port] = /probes at (\S+):(\d+)/.exec(this.#note) ?? [];
    return host === undefined ? null : { host, port: Number(port) };
  }
}
