import { serverId } from "../../test/contract/cell-fixtures.ts";
import { SchedulerRig } from "../../test/rigs/scheduler-rig.ts";
import { measure, report } from "../measure.ts";

const REQUESTS = 4_000;
const HOSTS = 200;
const VCPUS_OF_HOST = 1_000;

/** CPU time of one request, from its message to its task, by a whole scheduler whose stores are in memory and answer at once. */
export async function reportPlaced(): Promise<void> {
  report("placing one request, stores in memory, CPU time", await measure(cpuOfRequest), "µs");
}

async function cpuOfRequest(): Promise<number> {
  const rig = new SchedulerRig();
  const cell = await rig.addCell("one");
  await cell.addHosts(Array.from({ length: HOSTS }, () => VCPUS_OF_HOST));
  await rig.start([cell.open()]);
  const wants = Array.from({ length: REQUESTS }, (_, index) => rig.wants(index + 1));
  await rig.accept(wants, false);
  const before = process.cpuUsage();
  for (const spec of wants) await rig.publish(spec, spec.uuid);
  while (rig.acked.length < REQUESTS) await new Promise((resolve) => setTimeout(resolve, 1));
  const { user, system } = process.cpuUsage(before);
  const state = await rig.state(serverId(REQUESTS));
  if (state !== "dispatched one") throw new Error(`there is room for all, but one is ${state}`);
  await rig.close();
  return (user + system) / REQUESTS;
}
