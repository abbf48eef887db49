import { mixedWorld } from "../sim/mixed.ts";
import { simulate } from "../sim/simulate.ts";
import { measure, measuredOf, report } from "./measure.ts";

/** Some worlds wait for minutes until nothing is left in Neutron. These seconds cost little, so a few worlds more or less would decide the figure. */
const SEEDS = 40;
const HOSTS = 12;

interface Round {
  readonly simulatedMs: number;
  /** Of all threads of this process. */
  readonly cpuMs: number;
}

async function simulateAll(): Promise<Round> {
  const startedCpu = process.cpuUsage();
  let simulatedMs = 0;
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    const result = await simulate({ ...mixedWorld(seed), hosts: HOSTS });
    const [finding] = result.findings;
    if (finding !== undefined) throw new Error(`seed ${seed} breaks law ${finding.law}: ${finding.what}`);
    simulatedMs += result.simulatedMs;
  }
  const { user, system } = process.cpuUsage(startedCpu);
  return { simulatedMs, cpuMs: (user + system) / 1_000 };
}

/**
 * Measures how fast the simulator is. Each round runs 40 worlds of 12 hosts, whose faults and other sizes are drawn as by `berth sim --profile
 * mixed`, with all their audits. The first round, which compiles most of the code, only warms up. Two worlds hold nearly half of the
 * simulated seconds, so the CPU of a world says more about how many worlds a night has.
 */
export async function run(): Promise<void> {
  const cpuMsOfWorlds: number[] = [];
  const rate = await measure(async () => {
    const { simulatedMs, cpuMs } = await simulateAll();
    cpuMsOfWorlds.push(cpuMs / SEEDS);
    return simulatedMs / cpuMs;
  });
  report(`${SEEDS} mixed worlds of ${HOSTS} hosts`, rate, "simulated s per CPU s");
  report("CPU of a world", measuredOf(cpuMsOfWorlds.slice(1)), "ms");
}
