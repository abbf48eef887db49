import { reportDecisions } from "./scheduling/decisions.ts";
import { reportDurable } from "./scheduling/durable.ts";
import { reportHardGroups } from "./scheduling/hard-groups.ts";
import { reportPlaced } from "./scheduling/placed.ts";
import { printRaces, runRaces } from "./scheduling/races.ts";
import { reportWhyNot } from "./scheduling/why-not.ts";

/** Measures the cost of a decision at any size, how often schedulers conflict, and the throughput of the databases. */
export async function run(): Promise<void> {
  await reportDecisions();
  await reportWhyNot();
  reportHardGroups();
  await reportPlaced();
  await reportDurable();
  printRaces(runRaces());
}
