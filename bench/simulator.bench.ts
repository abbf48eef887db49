import { mixedWorld } from "../sim/mixed.ts";
import { simulate } from "../sim/simulate.ts";
import { measure, report } from "./measure.ts";

/** Some worlds wait for minutes until nothing is left in Neutron. These seconds cost little, so a few worlds more or less would decide the figure. */
const SEEDS = 40;
const HOSTS = 12;

/** Simulated seconds for each second of CPU, in all threads of this process, over the worlds of the same seeds. */
async function simulatedPerCpuSecond(): Promise<number> {
  const startedCpu = process.cpuUsage();
  let simulatedMs = 0;
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    const result = await simulate({ ...mixedWorld(seed), hosts: HOSTS });
    const [finding] = result.findings;
    if (finding !== undefined) throw new Error(`seed ${seed} breaks law ${finding.law}: ${finding.what}`);
    simulatedMs += result.simulatedMs;
  }
  const { user, system } = process.cpuUsage(startedCpu);
  return (simulatedMs * 1_000) / (user + system);
}

/**
 * Measures how fast the simulator is. Each round runs 40 worlds of 12 hosts, whose faults and other sizes are drawn as by `berth sim --profile
 * mixed`, with all their audits. The first round, which compiles most of the code, only warms up.
 */
export async function run(): Promise<void> {
  report(`${SEEDS} mixed worlds of ${HOSTS} hosts`, await measure(simulatedPerCpuSecond), "simulated s per CPU s");
}
