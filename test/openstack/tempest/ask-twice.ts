import { eventually } from "../../rigs/eventually.ts";
import type { Answer } from "../samples/answer.ts";

/** The microversion of the calls: the newest of Debian 12's Nova. */
const VERSION = "compute 2.93";
/** The key is nobody's: its private half was thrown away. */
const PUBLIC_KEY =
  "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl nobody@example.org";

/** A call that is made twice. */
export interface TwiceCall {
  readonly method: "POST" | "PUT" | "DELETE";
  /** `{name}` stands for the id of what an earlier call made first. */
  readonly path: string;
  readonly body?: unknown;
  /** The name of what it makes. All of it is deleted at the end, from this path. */
  readonly makes?: string;
  /** Whether the server `{server}` must have ended what it does before the second call and after it. */
  readonly settles?: boolean;
}

/** What the calls need: a flavor, an image, a network that all projects share, and a project that does not exist. */
export interface TwiceParts {
  readonly flavor: string;
  readonly image: string;
  readonly networkId: string;
}

/** Where the Compute API is, with `/v2.1`, and how a token of an administrator is made. */
export interface TwiceCloud {
  readonly url: string;
  readonly issue: () => Promise<string>;
}

/** The calls, in their order: those that make things, change them and delete them. */
export function twiceCalls({ flavor, image, networkId }: TwiceParts): readonly TwiceCall[] {
  const spec = { ram: 64, vcpus: 1, disk: 1 };
  const server = { name: "twice", flavorRef: flavor, imageRef: image, networks: [{ uuid: networkId }], tags: ["t"] };
  const act = (name: string, argument: unknown = null): TwiceCall => ({
    ...{ method: "POST", path: "/servers/{server}/action", body: { [name]: argument }, settles: true },
  });
  return [
    { method: "POST", path: "/flavors", body: { flavor: { id: "twice", name: "twice", ...spec } }, makes: "flavor" },
    { method: "POST", path: "/flavors", body: { flavor: { name: "twice-2", ...spec } }, makes: "flavor" },
    { method: "POST", path: "/flavors/twice/os-extra_specs", body: { extra_specs: { "hw:cpu_policy": "shared" } } },
    { method: "DELETE", path: "/flavors/twice/os-extra_specs/hw:cpu_policy" },
    { method: "POST", path: "/flavors/twice/action", body: { addTenantAccess: { tenant: "nobody" } } },
    { method: "POST", path: "/os-keypairs", body: { keypair: { name: "twice", type: "ssh", public_key: PUBLIC_KEY } } },
    { method: "DELETE", path: "/os-keypairs/twice" },
    {
      ...{ method: "POST", path: "/os-server-groups", makes: "server_group" },
      body: { server_group: { name: "twice", policy: "affinity" } },
    },
    { method: "DELETE", path: "/os-server-groups/{server_group}" },
    {
      ...{ method: "POST", path: "/os-aggregates", makes: "aggregate" },
      body: { aggregate: { name: "twice", availability_zone: "twice" } },
    },
    { method: "POST", path: "/os-aggregates/{aggregate}/action", body: { add_host: { host: "nowhere" } } },
    { method: "POST", path: "/os-aggregates/{aggregate}/action", body: { set_metadata: { metadata: { a: "b" } } } },
    { method: "DELETE", path: "/os-aggregates/{aggregate}" },
    { method: "PUT", path: "/os-quota-sets/nobody", body: { quota_set: { cores: 30 } } },
    { method: "PUT", path: "/os-quota-class-sets/default", body: { quota_class_set: { cores: 20 } } },
    { method: "POST", path: "/servers", body: { server }, makes: "server", settles: true },
    { method: "POST", path: "/servers/{server}/metadata", body: { metadata: { a: "b" } } },
    { method: "PUT", path: "/servers/{server}/metadata/a", body: { meta: { a: "b" } } },
    { method: "DELETE", path: "/servers/{server}/metadata/a" },
    { method: "PUT", path: "/servers/{server}/tags/x" },
    { method: "PUT", path: "/servers/{server}/tags", body: { tags: ["x", "y"] } },
    { method: "DELETE", path: "/servers/{server}/tags/x" },
    act("lock"),
    act("unlock"),
    act("addSecurityGroup", { name: "default" }),
    act("removeSecurityGroup", { name: "default" }),
    act("addSecurityGroup", { name: "nowhere" }),
    {
      ...{ method: "POST", path: "/servers/{server}/os-interface", settles: true },
      body: { interfaceAttachment: { net_id: networkId } },
    },
    ...["os-stop", "os-start", "pause", "unpause", "suspend", "resume", "rescue", "unrescue", "shelve"].map((name) =>
      act(name),
    ),
    { method: "DELETE", path: "/servers/{server}" },
  ];
}

/** Makes each call twice, deletes what they made, and returns the answers as lines without ids, so that those of two clouds can be compared. */
export async function askTwice(cloud: TwiceCloud, calls: readonly TwiceCall[]): Promise<readonly string[]> {
  const made = new Map<string, string[]>();
  const found: string[] = [];
  const fill = (path: string) => path.replace(/\{(\w+)\}/g, (_all, name) => made.get(name)?.[0] ?? "none");
  const settle = async (): Promise<void> => {
    await eventually("the server has ended what it does", () => isSettled(cloud, made.get("server")?.[0] ?? "none"), {
      everyMs: 1_000,
      withinMs: 300_000,
    });
  };
  const ask = async ({ method, path, body, makes, settles = false }: TwiceCall): Promise<string> => {
    const { status, answer } = await send(cloud, method, fill(path), body);
    const id = makes === undefined ? undefined : answer?.[makes]?.id;
    if (makes !== undefined && id !== undefined) made.set(makes, [...(made.get(makes) ?? []), String(id)]);
    if (settles) await settle();
    return `${status} ${messageOf(answer)}`;
  };
  try {
    for (const call of calls)
      found.push(
        `${call.method} ${call.path} ${JSON.stringify(call.body)}: ${await ask(call)}, then ${await ask(call)}`,
      );
  } finally {
    for (const { path, makes } of calls)
      for (const id of made.get(makes ?? "") ?? []) await send(cloud, "DELETE", `${path}/${id}`, undefined);
  }
  return found;
}

/** Whether a line of `askTwice` has an answer that says that the cloud itself has failed. */
export const isOutage = (line: string): boolean => /: 5\d\d |, then 5\d\d /.test(line);

async function send(
  { url, issue }: TwiceCloud,
  method: string,
  path: string,
  body: unknown,
): Promise<{ readonly status: number; readonly answer: Answer }> {
  const headers = {
    ...{ "x-auth-token": await issue(), "openstack-api-version": VERSION },
    ...(body === undefined ? {} : { "content-type": "application/json" }),
  };
  const answer = await fetch(`${url}${path}`, {
    method,
    headers,
    body: body === undefined ? null : JSON.stringify(body),
  });
  const text = await answer.text();
  return { status: answer.status, answer: text === "" ? null : JSON.parse(text) };
}

async function isSettled(cloud: TwiceCloud, id: string): Promise<boolean> {
  const { server } = (await send(cloud, "GET", `/servers/${id}`, undefined)).answer;
  return server.status !== "BUILD" && server["OS-EXT-STS:task_state"] === null;
}

/** The message of an error, without ids and without the numbers that Nova's client of Neutron adds to it. */
function messageOf(answer: Answer): string {
  const [fault] = Object.values(answer ?? {}) as readonly Answer[];
  const message: string = typeof fault?.message === "string" ? fault.message : "";
  return message
    .replace(/\nNeutron server returns request_ids:.*$/s, "")
    .replace(/\b[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}\b|\baggregate \d+\b|\bAggregate \d+\b/gi, "ID");
}
