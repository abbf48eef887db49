import { afterAll, beforeAll, expect, test } from "vitest";
import { ApiRig } from "./api-rig.ts";

const NONE = "00000000-0000-4000-8000-000000000000";

let rig: ApiRig;
let server: string;
let imageRef: string;
beforeAll(async () => {
  rig = await ApiRig.start({ auth: "noauth2", imageRule: "registered" });
  imageRef = (await rig.post("/image/v2/images", { visibility: "public" }, as(96))).json().id;
  server = await rig.bootActive("north", 0, { imageRef, networks: "none" }, as(96));
});
afterAll(() => rig.close());

function as(minor: number) {
  return { "x-auth-token": "admin:ops", "openstack-api-version": `compute 2.${minor}` };
}

const create = (changes: object) => ({ server: { name: "x", flavorRef: "1", networks: "none", imageRef, ...changes } });

type Asked = readonly [
  what: string,
  method: "GET" | "POST" | "PUT" | "DELETE",
  path: string,
  body: unknown,
  words: string,
  minor?: number,
];

const REFUSALS: readonly Asked[] = [
  [
    ...(["a server of an unknown image", "POST", "/servers"] as const),
    ...([create({ imageRef: NONE }), `Can not find requested image. Image ${NONE} could not be found.`] as const),
  ],
  ["a server of an unknown flavor", "POST", "/servers", create({ flavorRef: "zz" }), "Flavor zz could not be found."],
  [
    ...(["a zone of four parts", "POST", "/servers", create({ availability_zone: "a:b:c:d" })] as const),
    "Invalid input received: Unable to parse availability_zone. It is zone, zone:host or zone:host:node.",
  ],
  [
    ...(["a rebuild with an unknown image", "POST", "/servers/ID/action", { rebuild: { imageRef: NONE } }] as const),
    `Cannot find image for rebuild. Image ${NONE} could not be found.`,
  ],
  [
    ...(["a resize to an unknown flavor", "POST", "/servers/ID/action", { resize: { flavorRef: "zz" } }] as const),
    "Flavor zz could not be found.",
  ],
  ["an unknown action of a server", "POST", "/servers/ID/action", { zz: null }, "There is no such action: zz"],
  ["an unknown action of a flavor", "POST", "/flavors/1/action", { zz: {} }, "There is no such action: zz"],
  ["an unknown action of an aggregate", "POST", "/os-aggregates/1/action", { zz: {} }, "There is no such action: zz"],
  [
    "an unknown action of a migration",
    "POST",
    "/servers/ID/migrations/1/action",
    { zz: null },
    "There is no such action: zz",
  ],
  ...["/servers/ID/action", "/flavors/1/action", "/os-aggregates/1/action", "/servers/ID/migrations/1/action"].flatMap(
    (path) =>
      [{}, { lock: null, unlock: null }, [], "lock"].map(
        (body): Asked => [
          ...(["a body that does not name one action", "POST", path, body] as const),
          "Malformed request body. It names exactly one action.",
        ],
      ),
  ),
  [
    ...(["an unknown migration", "GET", "/servers/ID/migrations/9", undefined] as const),
    "In-progress live migration 9 is not found for server ID.",
  ],
  [
    ...(["an unknown port of a server", "GET", `/servers/ID/os-interface/${NONE}`, undefined] as const),
    `Port id ${NONE} could not be found. Instance ID has no such port.`,
  ],
  ["an unknown host", "GET", "/os-hosts/zz", undefined, "Host 'zz' is not mapped to any cell", 42],
  [
    ...([
      "a service of an unknown host",
      "PUT",
      "/os-services/enable",
      { host: "zz", binary: "nova-compute" },
    ] as const),
    ...(["Host 'zz' is not mapped to any cell", 52] as const),
  ],
  [
    ...(["a service's id that is no number", "DELETE", "/os-services/zz", undefined] as const),
    ...(["Invalid input received: id must be an integer, not zz.", 52] as const),
  ],
  [
    ...(["an unknown direction", "GET", "/servers?sort_dir=up", undefined] as const),
    "Invalid input received: Unknown sort direction, must be 'desc' or 'asc'",
  ],
  ...["tags", "tags-any", "not-tags", "not-tags-any", "config_drive"].map(
    (name): Asked => [
      ...([`an empty filter ${name}`, "GET", `/servers?${name}=`, undefined] as const),
      `Invalid input for query parameters ${name}. Value: . '' is not a 'regex'`,
    ],
  ),
  ...["/os-baremetal-nodes", "/os-baremetal-nodes/x"].map(
    (path): Asked => [
      ...(["a read of Ironic's nodes", "GET", path, undefined] as const),
      ...(["The requested functionality is not supported.", 35] as const),
    ],
  ),
  ...(
    [
      ["POST", "/os-baremetal-nodes", { node: {} }, "node-create"],
      ["DELETE", "/os-baremetal-nodes/x", undefined, "node-delete"],
      ["POST", "/os-baremetal-nodes/x/action", { add_interface: {} }, "port-create"],
      ["POST", "/os-baremetal-nodes/x/action", { remove_interface: {} }, "port-delete"],
    ] as const
  ).map(
    ([method, path, body, command]): Asked => [
      ...(["a change of Ironic's nodes", method, path, body] as const),
      ...([`Command not supported. Please use Ironic command ${command} to perform this action.`, 35] as const),
    ],
  ),
  ["a minRam that is no number", "GET", "/flavors?minRam=x", undefined, "Invalid minRam filter [x]"],
  ["a minDisk that is no number", "GET", "/flavors?minDisk=", undefined, "Invalid minDisk filter []"],
];

const CASES = REFUSALS.map(([what, method, path, body, words, minor = 96]) => ({
  what,
  method,
  path,
  body,
  words,
  minor,
}));

test.each(CASES)("$what is refused in Nova's words", async ({ method, path, body, words, minor }) => {
  const url = `/v2.1${path.replace("ID", server)}`;
  const answer = await rig.call({
    ...{ method, url, headers: { ...as(minor), "content-type": "application/json" } },
    ...(body !== undefined && { payload: JSON.stringify(body) }),
  });
  const [fault] = Object.values<{ readonly message: string }>(answer.json());
  expect([answer.statusCode, fault?.message]).toEqual([
    expect.toSatisfy((status) => [400, 404, 501].includes(status)),
    words.replaceAll("ID", server),
  ]);
});

test("a least amount of flavors may be below 0, as in Nova", async () => {
  for (const query of ["minRam=-1", "minDisk=-1", "minRam=+1"])
    expect((await rig.get(`/v2.1/flavors?${query}`, as(96))).json().flavors).not.toEqual([]);
});

test("a hint same_host that is no UUID names no server", async () => {
  const body = { ...create({}), "os:scheduler_hints": { same_host: "x" } };
  const hintsOf = async (token: string) => {
    const made = await rig.post("/v2.1/servers", body, { ...as(96), "x-auth-token": token });
    expect([made.statusCode, made.json()]).toEqual([202, expect.anything()]);
    const [record] = await rig.store.requests([made.json().server.id]);
    return record?.spec.hints;
  };
  expect(await hintsOf("admin:ops")).toEqual([{ name: "same_host", values: ["x"] }]);
  expect(await hintsOf("eve:p2")).toEqual([{ name: "same_host", values: ["00000000-0000-0000-0000-000000000000"] }]);
});
