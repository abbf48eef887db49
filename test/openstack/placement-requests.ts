import type { seededRandom } from "../../core/scheduling/seeded-random.ts";

/** A request to a Placement API. */
export interface PlacementRequest {
  readonly method: "GET" | "PUT" | "POST" | "DELETE";
  readonly path: string;
  readonly version: string;
  readonly body?: unknown;
}

type Unversioned = Omit<PlacementRequest, "version">;

/** The present state of the API that the requests go to, so that many of them are correct. */
export interface KnownState {
  /** The generations of the providers that exist. */
  readonly providers: ReadonlyMap<string, number>;
  /** The generations of the consumers that exist. */
  readonly consumers: ReadonlyMap<string, number>;
}

type Random = ReturnType<typeof seededRandom>;

const numbered = (kind: string, count: number): readonly string[] =>
  Array.from({ length: count }, (_, at) => `${kind.repeat(8)}-0000-4000-8000-${String(at).padStart(12, "0")}`);

export const PROVIDERS = numbered("a", 7);
export const CONSUMERS = numbered("c", 5);
const AGGREGATES = numbered("e", 3);
const PROJECTS = numbered("f", 2);
const USERS = numbered("d", 2);
const CLASSES = ["VCPU", "MEMORY_MB", "DISK_GB", "CUSTOM_A", "CUSTOM_B"];
const TRAITS = ["HW_CPU_X86_AVX", "STORAGE_DISK_SSD", "MISC_SHARES_VIA_AGGREGATE", "CUSTOM_T1", "CUSTOM_T2"];
const WRONG_NAMES = ["CUSTOM_MISSING", "custom_lower", "NO_SUCH", "CUSTOM_", "CUSTOM_A-B", ""];
/** Upstream refuses other names of classes in inventories only when it looks for the class. */
const WELL_FORMED = /^[A-Z0-9_]+$/;
const VERSIONS = [
  ...["1.0", "1.4", "1.6", "1.7", "1.8", "1.10", "1.12", "1.13", "1.17", "1.19", "1.20", "1.25", "1.28"],
  ...["1.29", "1.33", "1.34", "1.35", "1.36", "1.38"],
];

/** Makes random requests, most of them correct, over few names, so that they meet each other's effects. */
export class PlacementRequests {
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  next(known: KnownState): PlacementRequest {
    const version = this.#chance(0.75) ? "1.39" : this.#one(VERSIONS);
    const make = this.#one([
      () => this.#provider(known),
      () => this.#inventories(known),
      () => this.#inventories(known),
      () => this.#traitsOf(known),
      () => this.#aggregatesOf(known),
      () => this.#allocations(known),
      () => this.#allocations(known),
      () => this.#allocations(known),
      () => this.#manyAllocations(known),
      () => this.#names(),
      () => this.#read(),
      () => this.#read(),
      () => this.#candidates(),
      () => this.#reshape(known),
    ]);
    return { version, ...make() };
  }

  #provider(known: KnownState): Unversioned {
    const uuid = this.#one(PROVIDERS);
    if (this.#chance(0.15)) return { method: "DELETE", path: `/resource_providers/${uuid}` };
    const parent = this.#one([null, null, ...known.providers.keys(), this.#one(PROVIDERS)]);
    // Not the empty name, which upstream takes and Berth refuses, so that they would differ from then on.
    const name = this.#chance(0.9) ? `host ${uuid.at(-1)}` : this.#one(["host 1", "x".repeat(201), 7]);
    const body = this.#spoil({ name, ...(this.#chance(0.7) ? { parent_provider_uuid: parent } : {}) });
    if (known.providers.has(uuid) && this.#chance(0.8))
      return { method: "PUT", path: `/resource_providers/${uuid}`, body };
    return { method: "POST", path: "/resource_providers", body: { uuid, ...(body as object) } };
  }

  #inventories(known: KnownState): Unversioned {
    const uuid = this.#providerOf(known);
    const path = `/resource_providers/${uuid}/inventories`;
    const resource_provider_generation = this.#generation(known.providers.get(uuid));
    const name = this.#wellFormedClass();
    const kind = this.#random();
    if (kind < 0.08) return { method: "DELETE", path: this.#chance(0.5) ? path : `${path}/${name}` };
    if (kind < 0.2)
      return {
        ...{ method: "PUT", path: `${path}/${name}` },
        body: this.#spoil({ resource_provider_generation, ...this.#inventory() }),
      };
    if (kind < 0.28)
      return {
        ...{ method: "POST", path },
        body: this.#spoil({ resource_provider_generation, resource_class: name, ...this.#inventory() }),
      };
    return {
      ...{ method: "PUT", path },
      body: this.#spoil({ resource_provider_generation, inventories: this.#inventoriesByClass() }),
    };
  }

  #inventoriesByClass(): Readonly<Record<string, unknown>> {
    return Object.fromEntries(
      this.#some(CLASSES.length, () => this.#wellFormedClass()).map((name) => [name, this.#inventory()]),
    );
  }

  #inventory(): Readonly<Record<string, unknown>> {
    const total = this.#one([
      1,
      4,
      8,
      16,
      1_024,
      2_147_483_647,
      ...(this.#chance(0.1) ? [0, -1, 2_147_483_648, "8", 1.5] : []),
    ]);
    const sometimes = (name: string, values: readonly unknown[]) =>
      this.#chance(0.2) ? { [name]: this.#one(values) } : {};
    return {
      total,
      ...sometimes("reserved", [0, 1, 4, 16, 17, -1]),
      ...sometimes("min_unit", [1, 2, 0]),
      ...sometimes("max_unit", [1, 2, 8, 2_147_483_647, 0]),
      ...sometimes("step_size", [1, 2, 3, 0]),
      ...sometimes("allocation_ratio", [1, 0.5, 16, 1.5, 0, -1, 7_500_000_000]),
    };
  }

  #traitsOf(known: KnownState): Unversioned {
    const uuid = this.#providerOf(known);
    const path = `/resource_providers/${uuid}/traits`;
    if (this.#chance(0.1)) return { method: "DELETE", path };
    const traits = this.#some(TRAITS.length, () => this.#wrongly(this.#one(TRAITS)));
    const resource_provider_generation = this.#generation(known.providers.get(uuid));
    return { method: "PUT", path, body: this.#spoil({ resource_provider_generation, traits }) };
  }

  #aggregatesOf(known: KnownState): Unversioned {
    const uuid = this.#providerOf(known);
    const aggregates = this.#some(AGGREGATES.length, () => this.#one(AGGREGATES));
    const resource_provider_generation = this.#generation(known.providers.get(uuid));
    const body = this.#chance(0.1) ? aggregates : this.#spoil({ resource_provider_generation, aggregates });
    return { method: "PUT", path: `/resource_providers/${uuid}/aggregates`, body };
  }

  #allocations(known: KnownState): Unversioned {
    const consumer = this.#one(CONSUMERS);
    const path = `/allocations/${consumer}`;
    if (this.#chance(0.12)) return { method: "DELETE", path };
    return { method: "PUT", path, body: this.#spoil(this.#ofConsumer(known, consumer)) };
  }

  #manyAllocations(known: KnownState): Unversioned {
    return { method: "POST", path: "/allocations", body: this.#byConsumer(known) };
  }

  #byConsumer(known: KnownState): Readonly<Record<string, unknown>> {
    const consumers = [...new Set(this.#some(CONSUMERS.length, () => this.#one(CONSUMERS)))];
    return Object.fromEntries(consumers.map((uuid) => [uuid, this.#spoil(this.#ofConsumer(known, uuid))]));
  }

  #ofConsumer(known: KnownState, consumer: string): Readonly<Record<string, unknown>> {
    // Upstream keeps a row of an unknown consumer that is given nothing.
    const isEmpty = known.consumers.has(consumer) && this.#chance(0.15);
    const providers = isEmpty ? [] : this.#some(2, () => this.#providerOf(known));
    return {
      allocations: Object.fromEntries(providers.map((uuid) => [uuid, { resources: this.#amounts() }])),
      project_id: this.#one(PROJECTS),
      user_id: this.#one(USERS),
      consumer_generation:
        known.consumers.has(consumer) || this.#chance(0.1) ? this.#generation(known.consumers.get(consumer)) : null,
      consumer_type: this.#one(["INSTANCE", "INSTANCE", "MIGRATION", "unknown", "T_1"]),
    };
  }

  /** Amounts of one or two resource classes. */
  #amounts(): Readonly<Record<string, number>> {
    const amount = () => this.#one([1, 1, 2, 4, ...(this.#chance(0.1) ? [0, -1, 2_147_483_648] : [])]);
    return Object.fromEntries(this.#some(2, () => this.#class()).map((name) => [name, amount()]));
  }

  #names(): Unversioned {
    const isTrait = this.#chance(0.5);
    const name = this.#wrongly(isTrait ? this.#one(TRAITS) : this.#class());
    const path = `/${isTrait ? "traits" : "resource_classes"}/${name}`;
    const method = this.#one(["PUT", "PUT", "PUT", "GET", "DELETE"] as const);
    if (method === "PUT" && !isTrait && this.#chance(0.15))
      return { method: "POST", path: "/resource_classes", body: { name } };
    return { method, path };
  }

  #read(): Unversioned {
    const uuid = this.#one([...PROVIDERS, "not-a-uuid"]);
    const part = this.#one([
      "",
      "/inventories",
      "/usages",
      "/aggregates",
      "/traits",
      "/allocations",
      `/inventories/${this.#class()}`,
    ]);
    const query = this.#one([
      `name=host ${this.#number(7)}`,
      `in_tree=${uuid}`,
      `member_of=${this.#member()}`,
      `resources=${this.#resources()}`,
      `required=${this.#required()}`,
      `uuid=${uuid}`,
      `resources=${this.#resources()}&required=${this.#required()}&member_of=${this.#member()}`,
      "unknown=1",
    ]);
    return {
      method: "GET",
      path: this.#one([
        `/resource_providers/${uuid}${part}`,
        `/resource_providers/${uuid}${part}`,
        `/resource_providers?${query}`.replaceAll(" ", "%20"),
        `/allocations/${this.#one(CONSUMERS)}`,
        `/usages?project_id=${this.#one(PROJECTS)}${this.#one(["", `&user_id=${this.#one(USERS)}`, "&consumer_type=INSTANCE"])}`,
        `/traits?${this.#one(["name=startswith:CUSTOM_", "associated=true", "associated=x", "name=in:CUSTOM_T1,HW_CPU_X86_AVX"])}`,
      ]),
    };
  }

  #candidates(): Unversioned {
    const parts = [`resources=${this.#resources()}`];
    const sometimes = (chance: number, part: () => string) => {
      if (this.#chance(chance)) parts.push(part());
    };
    sometimes(0.3, () => `required=${this.#required()}`);
    sometimes(0.2, () => `member_of=${this.#member()}`);
    sometimes(0.15, () => `in_tree=${this.#one(PROVIDERS)}`);
    sometimes(0.3, () => `resources1=${this.#resources()}`);
    sometimes(0.1, () => `required1=${this.#required()}`);
    sometimes(0.15, () => `resources2=${this.#resources()}`);
    sometimes(0.3, () => `group_policy=${this.#one(["none", "isolate", "x"])}`);
    sometimes(0.1, () => `same_subtree=${this.#one(["1,2", "1", ",", "3"])}`);
    sometimes(0.1, () => `root_required=${this.#required()}`);
    sometimes(0.1, () => `limit=${this.#one(["1000", "0", "x"])}`);
    return { method: "GET", path: `/allocation_candidates?${parts.join("&")}` };
  }

  #reshape(known: KnownState): Unversioned {
    const providers = this.#some(2, () => this.#providerOf(known));
    const inventories = Object.fromEntries(
      providers.map((uuid) => [
        uuid,
        {
          inventories: this.#inventoriesByClass(),
          resource_provider_generation: this.#generation(known.providers.get(uuid)),
        },
      ]),
    );
    const allocations = this.#chance(0.3) ? {} : this.#byConsumer(known);
    return { method: "POST", path: "/reshaper", body: this.#spoil({ inventories, allocations }) };
  }

  #resources(): string {
    return this.#some(2, () => this.#class())
      .map((name) => `${name}:${this.#one([1, 1, 2, 4, ...(this.#chance(0.05) ? [0, "x", ""] : [])])}`)
      .join(",");
  }

  #required(): string {
    return this.#one([
      () => this.#one(TRAITS),
      () => `!${this.#one(TRAITS)}`,
      () => `in:${this.#one(TRAITS)},${this.#one(TRAITS)}`,
      () => this.#wrongly(this.#one(TRAITS)),
      () => `${this.#one(TRAITS)},!${this.#one(TRAITS)}`,
    ])();
  }

  #member(): string {
    return this.#one([
      () => this.#one(AGGREGATES),
      () => `in:${AGGREGATES[0]},${AGGREGATES[1]}`,
      () => `!${this.#one(AGGREGATES)}`,
      () => `!in:${AGGREGATES[0]},${AGGREGATES[1]}`,
      () => "x",
    ])();
  }

  #providerOf(known: KnownState): string {
    return this.#chance(0.92) && known.providers.size > 0
      ? this.#one([...known.providers.keys()])
      : this.#one(PROVIDERS);
  }

  #class(): string {
    return this.#wrongly(this.#one(CLASSES));
  }

  #wrongly(name: string): string {
    return this.#chance(0.03) ? this.#one(WRONG_NAMES) : name;
  }

  #generation(current: number | undefined): unknown {
    return this.#chance(0.9) ? (current ?? 0) : this.#one([(current ?? 0) + 1, 0, null, "1", -1]);
  }

  /** In one body of fourteen, leaves a field out, adds one or gives one a wrong type, or replaces the body by a list. */
  #spoil(body: Readonly<Record<string, unknown>>): unknown {
    if (this.#chance(0.93)) return body;
    const key = this.#one(Object.keys(body));
    const { [key]: _, ...rest } = body;
    return this.#one([rest, { ...body, extra: 1 }, { ...body, [key]: this.#one([[], {}, null, "x", 1.5]) }, []]);
  }

  #wellFormedClass(): string {
    const name = this.#class();
    return WELL_FORMED.test(name) ? name : this.#wellFormedClass();
  }

  /** Between one and `most` different values. */
  #some(most: number, make: () => string): string[] {
    return [...new Set(Array.from({ length: 1 + this.#number(most) }, make))];
  }

  #number(below: number): number {
    return Math.floor(this.#random() * below);
  }

  #chance(probability: number): boolean {
    return this.#random() < probability;
  }

  #one<Value>(values: readonly Value[]): Value {
    return values[this.#number(values.length)]!;
  }
}
