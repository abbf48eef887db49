import { expect, test } from "vitest";
import { composeText } from "../../deploy/compose-file.ts";
import { roleOf } from "./container-part.ts";

test.each([
  ["api-2", { role: "api", cell: null }],
  ["scheduler-1", { role: "scheduler", cell: null }],
  ["postgres", { role: "postgres", cell: null }],
  ["nats-3", { role: "nats", cell: null }],
  ["redis", { role: "redis", cell: null }],
  ["cell1-postgres", { role: "postgres", cell: "cell1" }],
  ["cell12-conductor-2", { role: "conductor", cell: "cell12" }],
  ["cell1-agent", { role: "agent", cell: "cell1" }],
  ["load-balancer", null],
  ["prepare", null],
  ["grafana", null],
])("%s is %j", (service, is) => {
  expect(roleOf(service)).toEqual(is);
});

test("the services of a deployment have all roles, in every cell", () => {
  const text = composeText({ cells: 2, hosts: 3, secretsDir: "secrets" });
  const services = [...text.matchAll(/^ {2}([a-z0-9-]+):$/gm)].map(([, name = ""]) => roleOf(name));
  const found = new Set(services.flatMap((is) => (is === null ? [] : [`${is.cell ?? "above"} ${is.role}`])));
  for (const role of ["api", "scheduler", "postgres", "nats", "redis"]) expect(found).toContain(`above ${role}`);
  for (const cell of ["cell1", "cell2"]) {
    for (const role of ["conductor", "agent", "postgres", "nats"]) expect(found).toContain(`${cell} ${role}`);
  }
});
