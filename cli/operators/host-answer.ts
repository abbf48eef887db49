/** A host as the operators' API lists it. */
export interface ListedHost {
  readonly host: string;
  readonly cell: string;
  readonly zone: string;
  readonly state: string;
  readonly status: string;
  readonly disabled_reason: string | null;
  readonly forced_down: boolean;
  readonly build_failures: number;
}

/** A host as the operators' API shows it alone. */
export interface ShownHost extends ListedHost {
  /** The bare metal node. Null if the host is none, absent in answers of older apis. */
  readonly node?: ShownNode | null;
  /** Why no server can be built on the host at present. Null if one can, absent in answers of older apis. */
  readonly closed_because?: string | null;
  readonly root_provider: string;
  readonly agent: string;
  readonly seen_at: string | null;
  readonly aggregates: readonly { readonly id: number; readonly name: string }[];
  readonly servers: number;
  readonly inventories: readonly ShownInventory[];
  readonly tree: ShownTree;
  readonly build_failures_half_life_seconds: number;
}

export interface ShownNode {
  readonly provision_state: string;
  readonly power_state: string;
  /** Why no further server can have the node. */
  readonly closed_because: string | null;
}

export interface ShownTree {
  readonly providers: readonly ShownProvider[];
  readonly notes: readonly string[];
}

export interface ShownProvider {
  readonly uuid: string;
  readonly name: string;
  readonly parent: string | null;
  readonly traits: readonly string[];
  /** `agent` or `other`. */
  readonly owner: string;
  readonly changed_at: string | null;
}

export interface ShownInventory {
  readonly provider: string;
  readonly resource_class: string;
  readonly total: number;
  readonly reserved: number;
  readonly used: number;
  readonly capacity: number;
  readonly allocation_ratio: number;
  readonly ratio_source: string;
  readonly reported_ratio: number | null;
}

/** Describes a state, for example `up` or `down, disabled (why)`. */
export function describeState(host: Pick<ListedHost, "state" | "status" | "disabled_reason" | "forced_down">): string {
  const words = [host.forced_down ? "forced down" : host.state];
  if (host.status === "disabled")
    words.push(host.disabled_reason === null ? "disabled" : `disabled (${host.disabled_reason})`);
  return words.join(", ");
}
