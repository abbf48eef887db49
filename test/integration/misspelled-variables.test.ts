import { expect, test } from "vitest";
import { auditDeclaration } from "../../cli/audit.ts";
import { misspelledVariables } from "../../runtime/misspelled-variables.ts";
import { envOf } from "../../runtime/settings.ts";
import { placementDeclaration } from "../../services/api/placement/settings.ts";
import { apiDeclaration } from "../../services/api/settings.ts";
import { agentDeclaration } from "../../services/compute-agent/settings.ts";
import { conductorDeclaration } from "../../services/conductor/settings.ts";
import { consoleProxyDeclaration } from "../../services/console-proxy/settings.ts";
import { schedulerDeclaration } from "../../services/scheduler/settings.ts";

const DECLARATIONS = [
  ...[apiDeclaration, schedulerDeclaration, conductorDeclaration, agentDeclaration, consoleProxyDeclaration],
  ...[placementDeclaration, auditDeclaration],
];

test.each([
  ["BERTH_LISTN", "BERTH_LISTEN"],
  ["BERTH_DATABSE_URL", "BERTH_DATABASE_URL"],
  ["BERTH_DATABASE_URL_FLIE", "BERTH_DATABASE_URL_FILE"],
  ["BERTH_REDIS_URI", "BERTH_REDIS_URL"],
])("%s has no effect, and the api says so and names %s", (variable, meant) => {
  expect(misspelledVariables(apiDeclaration, { [variable]: "x", BERTH_LISTEN: "y" })).toEqual([
    `${variable} has no effect: did you mean ${meant}?`,
  ]);
});

test("a variable of another service, which may be in the same file, is not taken for a misspelled one", () => {
  const all = DECLARATIONS.flatMap(({ settings }) => Object.keys(settings).map((name) => [envOf(name), "x"] as const));
  for (const declaration of DECLARATIONS)
    expect(misspelledVariables(declaration, Object.fromEntries(all)), declaration.command).toEqual([]);
});

test("variables of other programs are not looked at", () => {
  expect(misspelledVariables(apiDeclaration, { LISTN: "x", BERTHA_LISTEN: "x", BERTH_TEST_SEED: "1" })).toEqual([]);
});
