import { expect, test } from "vitest";
import { differences, parseTemplate } from "./match-answer.ts";

const TEMPLATE = parseTemplate(
  `{"server": {"id": "%(id)s", "status": "ACTIVE", "vcpus": 2, "locked": %(locked)s, "host": "compute", "tags": ["a"],
    "links": [{"rel": "next", "href": "%(versioned_compute_endpoint)s/servers?limit=1&marker=%(id)s"}]}}`,
);
const ANSWER = {
  ...{
    id: "70a599e0-31e7-49b7-b260-868f441e862b",
    status: "ACTIVE",
    vcpus: 8,
    locked: false,
    host: "one",
    tags: ["a"],
  },
  links: [{ rel: "next", href: "http://127.0.0.1:8774/v2.1/servers?marker=x&limit=1" }],
};
const found = (change: Readonly<Record<string, unknown>>) =>
  differences(TEMPLATE, { server: { ...ANSWER, ...change } });

test("an answer of the same shape matches, whatever the cloud's own values are", () => {
  expect(found({})).toEqual([]);
});

test.each([
  ["a missing field", { vcpus: undefined }, ".server.vcpus is undefined instead of 2"],
  ["another field", { more: 1 }, ".server.more is not in the sample"],
  ["another type", { vcpus: "8" }, '.server.vcpus is "8" instead of 2'],
  ["null for a text", { host: null }, ".server.host is null instead of a string like compute"],
  ["another fixed value of the API", { status: "ERROR" }, '.server.status is "ERROR" instead of ACTIVE'],
  ["a variable of another form", { id: "1" }, '.server.id is "1" instead of %(id)s'],
  ["an empty list", { tags: [] }, ".server.tags is empty"],
  ["a list's item that is like none", { tags: ["a", "b"] }, '.server.tags[1] is "b" instead of a'],
])("%s is a difference", (_title, change, difference) => {
  expect(found(change)).toEqual([difference]);
});

test("a link without one of its parameters is a difference", () => {
  expect(found({ links: [{ rel: "next", href: "http://127.0.0.1/v2.1/servers?limit=1" }] })).toHaveLength(1);
});
