import { randomUUID } from "node:crypto";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ANSWERS, type AnswerName } from "../../../services/api/placement/openapi/answers.ts";
import { OPENAPI_OPERATIONS } from "../../../services/api/placement/openapi/operations.ts";
import { PlacementRig } from "../../placement/placement-rig.ts";

/** The versions at which answers change, and the first and last versions. */
const MINORS = [0, 1, 2, 6, 7, 9, 10, 12, 13, 14, 17, 19, 20, 27, 28, 29, 30, 34, 38, 39];

const ajv = new Ajv2020({ strict: false, allErrors: true });
addFormats.default(ajv, ["uuid"]);
const validators = new Map(
  Object.entries(ANSWERS).map(([name, schema]) => [name as AnswerName, ajv.compile<unknown>(schema)]),
);
const visited = new Set<string>();

let rig: PlacementRig;
beforeAll(async () => {
  rig = await PlacementRig.start();
});
afterAll(() => rig.close());

type Method = "GET" | "PUT" | "POST" | "DELETE";

/** Sends requests at one version, and checks each answer against the document. */
class Asker {
  readonly #minor: number;
  constructor(minor: number) {
    this.#minor = minor;
  }

  async good(method: Method, template: string, path: string, body?: unknown): Promise<void> {
    const operation = `${method} ${template}`;
    const { status, text, json } = await this.#call(method, path, body);
    const { good } = OPENAPI_OPERATIONS[operation]!;
    visited.add(operation);
    expect(Object.keys(good), `${operation} at 1.${this.#minor}: ${text}`).toContain(String(status));
    const answer = good[status]!;
    if (answer === null) expect(text, operation).toBe("");
    else this.#fits(operation, answer, json);
  }

  async refused(status: number, method: Method, path: string, body?: unknown): Promise<void> {
    const answered = await this.#call(method, path, body);
    expect(answered.status, answered.text).toBe(status);
    this.#fits(`${method} ${path}`, "Errors", answered.json);
  }

  #call(method: Method, path: string, body: unknown) {
    return rig.client.call(method, path, { version: `1.${this.#minor}`, ...(body === undefined ? {} : { body }) });
  }

  #fits(operation: string, answer: AnswerName, json: unknown): void {
    const validate = validators.get(answer)!;
    validate(json);
    expect(validate.errors, `${operation} at 1.${this.#minor}: ${JSON.stringify(json)?.slice(0, 500)}`).toBeNull();
  }
}

test.each(MINORS)("the answers of 1.%i match the document", async (minor) => {
  const asker = new Asker(minor);
  const uuid = randomUUID();
  await asker.good("GET", "/", "/");
  await asker.refused(404, "GET", `/resource_providers/${randomUUID()}`);
  await asker.refused(400, "POST", "/resource_providers", { nobody: 1 });
  await tryProvider(asker, uuid);
  await tryInventories(asker, uuid);
  if (minor >= 1) await tryAggregates(asker, uuid, minor);
  if (minor >= 2) await tryClasses(asker, minor);
  if (minor >= 6) await tryTraits(asker, uuid);
  await tryAllocations(asker, uuid, minor);
  await tryRemovals(asker, uuid, minor);
});

test("every route was requested", () => {
  expect([...visited].sort()).toEqual(Object.keys(OPENAPI_OPERATIONS).sort());
});

const ONE = "/resource_providers/{uuid}";

async function tryProvider(asker: Asker, uuid: string): Promise<void> {
  const url = `/resource_providers/${uuid}`;
  await asker.good("POST", "/resource_providers", "/resource_providers", { uuid, name: uuid });
  await asker.good("GET", "/resource_providers", "/resource_providers");
  await asker.good("GET", ONE, url);
  await asker.good("PUT", ONE, url, { name: `renamed ${uuid}` });
}

async function tryInventories(asker: Asker, uuid: string): Promise<void> {
  const url = `/resource_providers/${uuid}/inventories`;
  const vcpu = { VCPU: { total: 8, allocation_ratio: 1.5, reserved: 1 } };
  await asker.good("PUT", `${ONE}/inventories`, url, { resource_provider_generation: 0, inventories: vcpu });
  await asker.good("POST", `${ONE}/inventories`, url, {
    resource_class: "MEMORY_MB",
    total: 64,
    resource_provider_generation: 1,
  });
  const template = `${ONE}/inventories/{resource_class}`;
  await asker.good("PUT", template, `${url}/MEMORY_MB`, { total: 32, resource_provider_generation: 2 });
  await asker.refused(409, "PUT", `${url}/MEMORY_MB`, { total: 16, resource_provider_generation: 0 });
  await asker.good("GET", `${ONE}/inventories`, url);
  await asker.good("GET", template, `${url}/VCPU`);
  await asker.good("DELETE", template, `${url}/MEMORY_MB`);
}

async function tryAggregates(asker: Asker, uuid: string, minor: number): Promise<void> {
  const url = `/resource_providers/${uuid}/aggregates`;
  const aggregates = [randomUUID()];
  const body = minor < 19 ? aggregates : { aggregates, resource_provider_generation: 4 };
  await asker.good("PUT", `${ONE}/aggregates`, url, body);
  await asker.good("GET", `${ONE}/aggregates`, url);
}

async function tryClasses(asker: Asker, minor: number): Promise<void> {
  const name = `CUSTOM_CLASS_${minor}`;
  const template = "/resource_classes/{name}";
  await asker.good("POST", "/resource_classes", "/resource_classes", { name });
  await asker.good("GET", "/resource_classes", "/resource_classes");
  await asker.good("GET", template, `/resource_classes/${name}`);
  const renamed = `${name}_B`;
  if (minor < 7) await asker.good("PUT", template, `/resource_classes/${name}`, { name: renamed });
  else await asker.good("PUT", template, `/resource_classes/${renamed}`);
  await asker.good("DELETE", template, `/resource_classes/${renamed}`);
}

async function tryTraits(asker: Asker, uuid: string): Promise<void> {
  const url = `/resource_providers/${uuid}/traits`;
  await asker.good("PUT", "/traits/{name}", "/traits/CUSTOM_SEEN");
  await asker.good("GET", "/traits/{name}", "/traits/CUSTOM_SEEN");
  await asker.good("GET", "/traits", "/traits");
  const generation = await generationOf(uuid);
  await asker.good("PUT", `${ONE}/traits`, url, {
    traits: ["CUSTOM_SEEN", "HW_CPU_X86_AVX"],
    resource_provider_generation: generation,
  });
  await asker.good("GET", `${ONE}/traits`, url);
}

async function generationOf(uuid: string): Promise<number> {
  return (await rig.client.must<{ generation: number }>("GET", `/resource_providers/${uuid}`)).generation;
}

/** The body of PUT /allocations/{consumer} in the format of each version. */
function bodyAt(minor: number, provider: string, generation: number | null): Readonly<Record<string, unknown>> {
  const resources = { VCPU: 1 };
  return {
    allocations: minor < 12 ? [{ resource_provider: { uuid: provider }, resources }] : { [provider]: { resources } },
    ...(minor < 8 ? {} : { project_id: "project", user_id: "user" }),
    ...(minor < 28 ? {} : { consumer_generation: generation }),
    ...(minor < 38 ? {} : { consumer_type: "INSTANCE" }),
  };
}

async function tryAllocations(asker: Asker, uuid: string, minor: number): Promise<void> {
  const consumer = randomUUID();
  const template = "/allocations/{consumer_uuid}";
  await asker.good("PUT", template, `/allocations/${consumer}`, bodyAt(minor, uuid, null));
  if (minor >= 13) await asker.good("POST", "/allocations", "/allocations", { [consumer]: bodyAt(minor, uuid, 1) });
  await asker.good("GET", template, `/allocations/${consumer}`);
  await asker.good("GET", `${ONE}/allocations`, `/resource_providers/${uuid}/allocations`);
  await asker.good("GET", `${ONE}/usages`, `/resource_providers/${uuid}/usages`);
  if (minor >= 9) await asker.good("GET", "/usages", "/usages?project_id=project");
  if (minor >= 10) await asker.good("GET", "/allocation_candidates", "/allocation_candidates?resources=VCPU:1");
  if (minor >= 30) {
    await asker.good("POST", "/reshaper", "/reshaper", {
      inventories: {
        [uuid]: { resource_provider_generation: await generationOf(uuid), inventories: { VCPU: { total: 9 } } },
      },
      allocations: { [consumer]: bodyAt(minor, uuid, 2) },
    });
  }
  await asker.good("DELETE", template, `/allocations/${consumer}`);
}

async function tryRemovals(asker: Asker, uuid: string, minor: number): Promise<void> {
  const url = `/resource_providers/${uuid}`;
  if (minor >= 6) await asker.good("DELETE", `${ONE}/traits`, `${url}/traits`);
  if (minor >= 6) await asker.good("DELETE", "/traits/{name}", "/traits/CUSTOM_SEEN");
  if (minor >= 5) await asker.good("DELETE", `${ONE}/inventories`, `${url}/inventories`);
  await asker.good("DELETE", ONE, url);
}
