import { expect, test } from "vitest";
import { cellPermissionsOfApi, conductorPermissions } from "../adapters/nats/streams.ts";
import { natsConfig, publishSubjects } from "./nats-config.ts";

const cell = { name: "c1", apiPassword: "p1", conductorPassword: "p2" };
const options = { apiPassword: "p0", cells: [cell], storeDir: "/var/lib/nats" };

test("a conductor publishes its cell's events, its consumer's pulls and acknowledgements, and one request about that consumer", () => {
  expect(publishSubjects(conductorPermissions("c1"))).toEqual([
    "cell.c1.events",
    "$JS.API.CONSUMER.INFO.TASKS.conductors",
    "$JS.API.CONSUMER.MSG.NEXT.TASKS.conductors",
    "$JS.ACK.TASKS.conductors.>",
  ]);
});

test("there is an account for the API tier and one for each cell, and the server listens on loopback", () => {
  const text = natsConfig({ ...options, cells: [cell, { ...cell, name: "c-2" }] });
  expect(text).toContain('listen: "127.0.0.1:4222"');
  expect(text.match(/"(BERTH_API|CELL_[^"]*)" \{/g)).toEqual(['"BERTH_API" {', '"CELL_c1" {', '"CELL_c-2" {']);
  expect(text.match(/user: "[^"]*"/g)).toEqual(
    ["api", "api-c1", "conductor-c1", "api-c-2", "conductor-c-2"].map((user) => `user: "${user}"`),
  );
  expect(text).not.toContain("allow: []");
});

test("the same cells give the same text", () => {
  expect(natsConfig(options)).toBe(natsConfig(options));
});

test("only conductors may answer, each answer where it was asked for and nowhere else", () => {
  const text = natsConfig(options);
  expect(text).toContain(
    'subscribe { allow: ["_INBOX.conductor-c1.>", "cell.c1.consoles"] }\n          allow_responses { max: 1',
  );
  expect(text.match(/allow_responses/g)).toHaveLength(1);
  expect(publishSubjects(cellPermissionsOfApi("c1"))).toContain("cell.c1.consoles");
});

test("quotes and backslashes of a password are escaped", () => {
  expect(natsConfig({ ...options, apiPassword: 'a"b\\c$d' })).toContain('password: "a\\"b\\\\c$d"');
});

test.each(["a.b", "a b", "", "*", ">", 'a"', "ü"])("the cell name %j is refused", (name) => {
  expect(() => natsConfig({ ...options, cells: [{ ...cell, name }] })).toThrow(/cannot be the name/);
});

test("two cells of one name and passwords with control characters are refused", () => {
  expect(() => natsConfig({ ...options, cells: [cell, cell] })).toThrow(/same name/);
  expect(() => natsConfig({ ...options, apiPassword: "a\nb" })).toThrow(/printable/);
});
