import { reportDecisions } from "./scheduling/decisions.ts";
import { reportDurable } from "./scheduling/durable.ts";
import { reportHardGroups } from "./scheduling/hard-groups.ts";
import { reportPlaced } from "./scheduling/placed.ts";
import { printRaces, runRaces } from "./scheduling/races.ts";
import { reportWhyNot } from "./scheduling/why-not.ts";

/** What a decision costs at any size, how often schedulers get in each other's way, and what the databases let through. */
export async function run(): Promise<void> {
  await reportDecisions();
  await reportWhyNot();
  reportHardGroups();
  await reportPlaced();
  await reportDurable();
  printRaces(runRaces());
}
