import { expect, test } from "vitest";
import { answerMetadata } from "./metadata-answer.ts";

const METADATA = {
  ...{ uuid: "6f1f2ad0-7d3c-4d0b-8f0e-0c9b6a8c0001", hostname: "web", launch_index: 3, availability_zone: "az1" },
  keys: [
    { name: "mine", type: "ssh", data: "ssh-ed25519 AAAA me" },
    { name: "yours", type: "ssh", data: "ssh-ed25519 BBBB you" },
  ],
};
const files = (metadata: object = METADATA) =>
  new Map([
    ["openstack/latest/meta_data.json", Buffer.from(JSON.stringify(metadata))],
    ["openstack/latest/user_data", Buffer.from("#!/bin/sh\n")],
    ["openstack/content/0000", Buffer.from("a file")],
    ["secret", Buffer.from("of nobody")],
  ]);
const text = (path: string, of = files()) => answerMetadata(of, path).body.toString();

test("every version of OpenStack's metadata has the config drive's documents", () => {
  expect(text("/openstack").split("\n")).toEqual(expect.arrayContaining(["2012-08-10", "2018-08-27", "latest"]));
  expect(text("/openstack/latest/").split("\n")).toEqual(["meta_data.json", "user_data"]);
  expect(JSON.parse(text("/openstack/2013-10-17/meta_data.json"))).toEqual(METADATA);
  expect(answerMetadata(files(), "/openstack/latest/meta_data.json").contentType).toBe("application/json");
  expect(text("//openstack/latest//user_data")).toBe("#!/bin/sh\n");
  expect(text("/openstack/content/0000")).toBe("a file");
});

test("the metadata is also there in the form of EC2", () => {
  expect(text("/")).toMatch(/^1\.0\n.*2009-04-04\nlatest$/s);
  expect(text("/latest")).toBe("meta-data/\nuser-data");
  const names = "ami-launch-index hostname instance-action instance-id local-hostname placement/ public-hostname";
  expect(text("/latest/meta-data/").split("\n")).toEqual([...names.split(" "), "public-keys/"]);
  expect(text("/2009-04-04/meta-data/instance-id")).toBe("i-6f1f2ad07d3c4d0b8");
  expect(text("/ec2/latest/meta-data/placement/availability-zone")).toBe("az1");
  expect(text("/latest/meta-data/public-keys/")).toBe("0=mine\n1=yours");
  expect(text("/latest/meta-data/public-keys/1")).toBe("openssh-key");
  expect(text("/latest/meta-data/public-keys/1/openssh-key")).toBe("ssh-ed25519 BBBB you");
  expect(text("/latest/user-data")).toBe("#!/bin/sh\n");
  const { keys: _, ...keyless } = METADATA;
  expect(text("/latest/meta-data/", files(keyless))).not.toContain("public-keys");
});

test.each([
  ...["/openstack/2030-01-01/meta_data.json", "/openstack/latest/password", "/openstack/content", "/secret"],
  ...["/openstack/latest/../../secret", "/latest/meta-data/toString", "/latest/meta-data/hostname/0", "/3000-01-01"],
  ...["/latest/meta-data/public-keys/2/openssh-key", "/latest/user-data/more", "/latest/meta-data/hostname/length"],
])("there is nothing at %s", (path) => {
  expect(answerMetadata(files(), path).status).toBe(404);
});

test("a server without user data has none in either form", () => {
  const without = files();
  without.delete("openstack/latest/user_data");
  expect(answerMetadata(without, "/latest/user-data").status).toBe(404);
  expect(answerMetadata(without, "/openstack/latest/user_data").status).toBe(404);
  expect(text("/latest", without)).toBe("meta-data/");
});
