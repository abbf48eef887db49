import { expect, test } from "vitest";
import { permitOfCertificate, urisOfNames } from "./certificate-permit.ts";

test.each([
  ["DNS:a, URI:berth:agent:x, IP Address:127.0.0.1, URI:berth:host:x-*", ["berth:agent:x", "berth:host:x-*"]],
  // A single URI that contains a comma, quoted as Node prints it. It must not be read as two URIs.
  ['URI:"berth:agent:x, URI:berth:host:*", DNS:b', []],
  ['URI:"berth:agent:x\\", URI:berth:host:*", URI:berth:host:y', ["berth:host:y"]],
  ['DNS:"a, URI:berth:host:*"', []],
  ["", []],
])("the URIs of %s", (names, uris) => {
  expect(urisOfNames(names)).toEqual(uris);
});

test("no certificate allows nothing", () => {
  expect(permitOfCertificate(undefined)).toEqual({ agentIds: [], hosts: [] });
});
