import { expect, test } from "vitest";
import type { LinkEnd } from "./chaos-cloud.ts";
import { isMeant } from "./select.ts";

const ends: readonly LinkEnd[] = [
  { name: "above", role: "above", cell: null },
  { name: "nats", role: "nats", cell: null },
  { name: "cell1-nats", role: "nats", cell: "cell1" },
  { name: "cell2-nats", role: "nats", cell: "cell2" },
  { name: "cell1-conductor-1", role: "conductor", cell: "cell1" },
];

test.each([
  ["nats", ["nats", "cell1-nats", "cell2-nats"]],
  ["nats@cell1", ["cell1-nats"]],
  ["nats@above", ["nats"]],
  ["cell1", ["cell1-nats", "cell1-conductor-1"]],
  ["above", ["above"]],
  ["cell1-conductor-1", ["cell1-conductor-1"]],
  ["cell3", []],
])("%s means %j", (word, names) => {
  expect(ends.filter((end) => isMeant(word, end)).map(({ name }) => name)).toEqual(names);
});
