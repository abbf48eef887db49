import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "vitest";
import { REMOVED_ROUTES } from "../../../services/api/compute/removed/removed-routes.ts";
import { SERVER_ACTIONS } from "../../../services/api/compute/server-actions/server-actions.ts";
import { MINOR_MAX, MINOR_MIN } from "../../../services/api/http/microversion.ts";
import { rangeOf } from "../../../services/api/http/route-facts.ts";
import { ApiRig } from "./api-rig.ts";

const page = readFileSync(new URL("../../../docs/compute-api.md", import.meta.url), "utf8");

interface ServedRoute {
  readonly url: string;
  readonly methods: readonly string[];
  /** The first and the last microversion that have the route. */
  readonly first: number;
  readonly last: number;
}

/** The rows of the table, such as `| `/servers/{id}/tags` | GET, PUT | from 2.26 | … |`. */
const rows = [...page.matchAll(/^\| `(\/[^`]*)` \| ([A-Z, ]+) \| (all|from 2\.\d+|to 2\.\d+) \| .*\|$/gm)].map(
  ([, path = "", methods = "", range = ""]): ServedRoute => {
    const minor = Number(range.split("2.")[1]);
    return {
      url: `/v2.1${path === "/" ? "" : path.replaceAll(/\{(\w+)\}/g, ":$1")}`,
      methods: methods.split(", "),
      first: range.startsWith("from") ? minor : MINOR_MIN,
      last: range.startsWith("to") ? minor : MINOR_MAX,
    };
  },
);

let rig: ApiRig;
beforeAll(async () => {
  rig = await ApiRig.start();
});
afterAll(() => rig.close());

it("are all in the table of docs/compute-api.md, which has no others", () => {
  const removed = new Set(REMOVED_ROUTES.map(([url]) => `/v2.1${url}`));
  const registered = rig.api.http.knownRoutes!()
    .filter(({ method, url }) => method !== "HEAD" && /^\/v2\.1(\/|$)/.test(url) && !removed.has(url))
    .map(({ method, url }) => `${method} ${url}`);
  const described = rows.flatMap(({ url, methods }) => methods.map((method) => `${method} ${url}`));
  expect(described.toSorted()).toEqual(registered.toSorted());
  for (const [url] of REMOVED_ROUTES) expect(page).toContain(`\`${/^\/(?:servers\/:id\/)?([\w-]+)/.exec(url)?.[1]}\``);
});

const NO_ROUTE = { itemNotFound: { code: 404, message: "The resource could not be found." } };

it("answer 404 before and after the microversions that the table says, and otherwise within them", async () => {
  const isMissing = async (method: string, url: string, minor: number) => {
    const path = url.replaceAll(/:\w+/g, "11111111-1111-4111-8111-111111111111");
    // The body has a wrong form, so that the call changes nothing; a microversion without the route is refused before that.
    const body = method === "POST" || method === "PUT" ? { payload: '{"wrong":1}' } : {};
    const headers = { "openstack-api-version": `compute 2.${minor}`, "content-type": "application/json" };
    const answer = await rig.call({ method: method as "GET", url: path, headers, ...body });
    return answer.body === JSON.stringify(NO_ROUTE);
  };
  for (const { url, methods, first, last } of rows) {
    // Unknown versions and extensions have the message of unknown routes.
    if (url.endsWith("/versions/:id") || url.endsWith("/extensions/:alias")) continue;
    for (const method of methods) {
      const asked = `${method} ${url}`;
      expect([asked, await isMissing(method, url, first)]).toEqual([asked, false]);
      expect([asked, await isMissing(method, url, last)]).toEqual([asked, false]);
      if (first > MINOR_MIN) expect([asked, await isMissing(method, url, first - 1)]).toEqual([asked, true]);
      if (last < MINOR_MAX) expect([asked, await isMissing(method, url, last + 1)]).toEqual([asked, true]);
    }
  }
});

it("refuse calls in Nova's order: the JSON, the microversion, the form of the body, the policy", async () => {
  const strict = await ApiRig.start({ auth: "noauth2" });
  const url = "/v2.1/flavors/1";
  const put = async (minor: number, payload: string) => {
    const headers = { "openstack-api-version": `compute 2.${minor}`, "content-type": "application/json" };
    const asked = { ...headers, "x-auth-token": "bob:project" };
    return (await strict.call({ method: "PUT", url, headers: asked, payload })).statusCode;
  };
  expect(await put(54, "{")).toBe(400);
  expect(await put(54, "{}")).toBe(404);
  expect(await put(55, "{}")).toBe(400);
  expect(await put(55, JSON.stringify({ flavor: { description: "d" } }))).toBe(403);
  await strict.close();
});

it("have the actions that the page names", () => {
  const [, section = ""] = /## Actions of servers\n([\s\S]*?)\n\n`changePassword` answers/.exec(page) ?? [];
  const named = [...section.matchAll(/`([\w-]+)`/g)].map(([, action]) => action);
  expect(named.toSorted()).toEqual([...SERVER_ACTIONS.keys()].toSorted());
});

it("have each action of servers in the microversions that its facts say, and no others", async () => {
  const url = "/v2.1/servers/11111111-1111-4111-8111-111111111111/action";
  for (const [action, facts] of SERVER_ACTIONS) {
    const { since, until } = rangeOf(facts);
    for (const minor of new Set([MINOR_MIN, since - 1, since, until, until + 1, MINOR_MAX])) {
      if (minor < MINOR_MIN || minor > MINOR_MAX) continue;
      const { json } = await rig.post(url, { [action]: null }, { "openstack-api-version": `compute 2.${minor}` });
      const isMissing = JSON.stringify(json()) === JSON.stringify(NO_ROUTE);
      expect([action, minor, isMissing]).toEqual([action, minor, minor < since || minor > until]);
    }
  }
});

/** The actions of servers that Nova has at some microversion. Source: Nova's `routes.py` and its controllers. */
const NOVA_ACTIONS = [
  ...["addFixedIp", "addFloatingIp", "addSecurityGroup", "changePassword", "confirmResize", "evacuate"],
  ...[
    "forceDelete",
    "injectNetworkInfo",
    "lock",
    "migrate",
    "os-getConsoleOutput",
    "os-getRDPConsole",
    "os-getSPICEConsole",
  ],
  ...["os-getSerialConsole", "os-getVNCConsole", "os-migrateLive", "os-resetState", "os-start", "os-stop", "pause"],
  ...[
    "reboot",
    "rebuild",
    "removeFixedIp",
    "removeFloatingIp",
    "removeSecurityGroup",
    "rescue",
    "resetNetwork",
    "resize",
  ],
  ...[
    "restore",
    "resume",
    "revertResize",
    "shelve",
    "shelveOffload",
    "suspend",
    "trigger_crash_dump",
    "unlock",
    "unpause",
  ],
  ...["unrescue", "unshelve"],
];

it("leave no action of Nova unmentioned or unserved", async () => {
  expect(NOVA_ACTIONS.filter((action) => !page.includes(`\`${action}\``))).toEqual([]);
  const url = "/v2.1/servers/11111111-1111-4111-8111-111111111111/action";
  const unknown: string[] = [];
  for (const action of [...NOVA_ACTIONS, "unheardOf"])
    if ((await rig.post(url, { [action]: {} })).body.includes("no such action")) unknown.push(action);
  expect(unknown).toEqual(["unheardOf"]);
});
