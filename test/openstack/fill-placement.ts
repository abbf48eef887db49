import type { CallPlacement } from "./real-placement.ts";

export const PROJECT = "11111111-1111-4111-8111-111111111111";
const USER = "22222222-2222-4222-8222-222222222222";
const AGGREGATE = "33333333-3333-4333-8333-333333333333";

const uuid = (kind: string, number: number): string =>
  `${kind.repeat(8)}-0000-4000-8000-${String(number).padStart(12, "0")}`;
const provider = (number: number): string => uuid("a", number);
const consumer = (number: number): string => uuid("c", number);

/** The created resources, to be read again. */
export interface FilledPlacement {
  readonly providers: readonly string[];
  readonly consumers: readonly string[];
}

/**
 * Fills a Placement through its API with everything that its tables can contain: trees of three levels, one provider moved below a younger
 * one, custom names, aggregates, a sharing provider, and consumers with one type, with another, and from before types existed.
 */
export async function fillPlacement(call: CallPlacement): Promise<FilledPlacement> {
  const must = async (method: string, path: string, body?: unknown, version = "1.39") => {
    const answer = await call(method, path, version, body);
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body as Readonly<Record<string, unknown>>;
  };
  await must("PUT", "/resource_classes/CUSTOM_GPU");
  for (const name of ["CUSTOM_FAST", "CUSTOM_GONE"]) await must("PUT", `/traits/${name}`);

  const parents = [null, 1, 2, null, 4, null, 1] as const;
  for (const [index, parent] of parents.entries())
    await must("POST", "/resource_providers", {
      name: `host ${index + 1}`,
      uuid: provider(index + 1),
      ...(parent === null ? {} : { parent_provider_uuid: provider(parent) }),
    });
  await must("PUT", `/resource_providers/${provider(3)}`, { name: "höst 3", parent_provider_uuid: provider(7) });

  const generation = async (number: number) =>
    (await must("GET", `/resource_providers/${provider(number)}`)).generation;
  const setInventories = async (number: number, inventories: unknown) =>
    must("PUT", `/resource_providers/${provider(number)}/inventories`, {
      resource_provider_generation: await generation(number),
      inventories,
    });
  await setInventories(1, {
    VCPU: { total: 16, allocation_ratio: 4, reserved: 1 },
    MEMORY_MB: { total: 65_536, step_size: 256 },
  });
  await setInventories(3, { CUSTOM_GPU: { total: 4, max_unit: 2 } });
  await setInventories(4, { VCPU: { total: 8, allocation_ratio: 1.5 } });
  await setInventories(6, { DISK_GB: { total: 2_000, min_unit: 10, step_size: 10 } });
  for (const [number, traits] of [
    [1, ["HW_CPU_X86_AVX2", "CUSTOM_FAST"]],
    [6, ["MISC_SHARES_VIA_AGGREGATE"]],
  ] as const)
    await must("PUT", `/resource_providers/${provider(number)}/traits`, {
      resource_provider_generation: await generation(number),
      traits,
    });
  for (const number of [1, 4, 6])
    await must("PUT", `/resource_providers/${provider(number)}/aggregates`, {
      resource_provider_generation: await generation(number),
      aggregates: [AGGREGATE],
    });

  const allocate = (number: number, allocations: Readonly<Record<string, unknown>>, more: object, version?: string) =>
    must(
      "PUT",
      `/allocations/${consumer(number)}`,
      { allocations, project_id: PROJECT, user_id: USER, consumer_generation: null, ...more },
      version,
    );
  const of = (number: number, resources: unknown) => ({ [provider(number)]: { resources } });
  await allocate(
    1,
    { ...of(1, { VCPU: 4, MEMORY_MB: 1_024 }), ...of(3, { CUSTOM_GPU: 2 }), ...of(6, { DISK_GB: 50 }) },
    { consumer_type: "INSTANCE" },
  );
  await allocate(
    1,
    { ...of(1, { VCPU: 2, MEMORY_MB: 512 }), ...of(6, { DISK_GB: 50 }) },
    { consumer_generation: 1, consumer_type: "INSTANCE" },
  );
  await allocate(2, of(4, { VCPU: 12 }), { consumer_type: "MIGRATION" });
  await allocate(3, of(1, { VCPU: 1 }), {}, "1.28");
  return { providers: parents.map((_parent, index) => provider(index + 1)), consumers: [1, 2, 3, 4].map(consumer) };
}
