import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { composeText } from "./compose-file.ts";
import { secretFiles } from "./secret-files.ts";

interface File {
  readonly services: Readonly<
    Record<
      string,
      { networks: string[]; mem_limit: string; volumes?: string[]; env_file?: string[]; profiles?: string[] }
    >
  >;
}

const three = composeText({ cells: 3, hosts: 50, secretsDir: "./secrets" });
const { services } = parse(three) as File;

test("the committed compose file is the one that is written for three cells", () => {
  expect(readFileSync(join(import.meta.dirname, "compose.yaml"), "utf8")).toBe(three);
});

test("conductors and agents are on their own cell's network and no other, and are given nothing from above", () => {
  const inside = Object.entries(services).filter(([name]) => /-(conductor-\d|agent)$/.test(name));
  expect(inside).toHaveLength(9);
  for (const [name, service] of inside) {
    const cell = name.split("-")[0] ?? "";
    expect(service.networks).toEqual([cell]);
    for (const file of [...(service.env_file ?? []), ...(service.volumes ?? [])]) expect(file).toContain(cell);
  }
});

test("a conductor's secrets name the cell's own servers only", () => {
  const files = secretFiles(["cell1", "cell2"], (what) => what.replaceAll(" ", "-"));
  const hosts = [...(files["cell1-conductor.env"] ?? "").matchAll(/@([^:]+):/g)].map(([, host]) => host);
  expect(hosts).toEqual(["cell1-postgres", "cell1-nats"]);
});

test("three cells fit in 8 GiB, with all that watches them", () => {
  const mib = Object.values(services).reduce((sum, { mem_limit: limit }) => sum + Number.parseInt(limit, 10), 0);
  expect(mib).toBeLessThanOrEqual(8_192);
});

test("no password stands in the file", () => {
  expect(three).not.toMatch(/password/i);
});
