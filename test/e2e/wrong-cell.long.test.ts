import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { LocalAgent } from "../../chaos/local/local-agent.ts";
import { eventually } from "../rigs/eventually.ts";
import type { E2eCell } from "./cell.ts";
import { Cloud } from "./cloud.ts";

const PATIENT = { everyMs: 50, withinMs: 60_000 };

let cloud: Cloud;
let agent: LocalAgent;
beforeAll(async () => {
  cloud = await Cloud.start({ cells: ["cell-1", "cell-2"], schedulers: 1, conductors: 1, agents: 1, hostsPerAgent: 1 });
});
afterAll(async () => {
  await agent?.stop();
  await cloud?.close();
});

/** An agent without certificates, which is given the addresses of the conductors of a cell. */
function agentOf(home: E2eCell, addresses: () => E2eCell): LocalAgent {
  const dataDir = dirname(home.agents[0]!.journal);
  return new LocalAgent({
    ...{ id: "stray", cell: home.name, hosts: ["stray-1"], journal: join(dataDir, "stray.journal") },
    env: () => ({
      ...{ BERTH_AGENT_ID: "stray", BERTH_HOSTS: "1", BERTH_DATA_DIR: dataDir },
      BERTH_CONDUCTORS: addresses()
        .conductors.map(({ port }) => `127.0.0.1:${port}`)
        .join(","),
    }),
  });
}

test("an agent that is given the addresses of another cell's conductors by mistake stays out of that cell, and says why", async () => {
  const [home, other] = [cloud.cell("cell-1"), cloud.cell("cell-2")];
  let named = home;
  agent = agentOf(home, () => named);
  const isUpIn = (cell: E2eCell) => async () =>
    (await cell.query("select from hosts where name = $1 and up", agent.hosts)).length === 1;
  await agent.start();
  await eventually("the host to be up at home", isUpIn(home), PATIENT);
  await eventually(
    "the cell in the journal",
    () => existsSync(agent.journal) && readFileSync(agent.journal, "utf8").includes('"cell":"cell-1"'),
    PATIENT,
  );
  await agent.kill();
  named = other;
  agent.mark();
  await agent.start();
  await eventually("the agent's reason", () => agent.logSinceMark(200).includes("is in cell cell-1"), PATIENT);
  for (const table of ["hosts", "resource_providers"])
    expect(await other.query(`select from ${table} where name = $1`, agent.hosts)).toEqual([]);
  await agent.kill();
  named = home;
  await eventually("the host to be down", async () => !(await isUpIn(home)()), PATIENT);
  await agent.start();
  await eventually("the host to be up again", isUpIn(home), PATIENT);
});
