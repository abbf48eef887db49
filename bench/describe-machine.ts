import { availableParallelism, cpus, release, totalmem, type } from "node:os";

/** Describes the machine in one line, without which a figure means nothing. */
export function describeMachine(): string {
  const [cpu] = cpus();
  const memoryGib = (totalmem() / 2 ** 30).toFixed(1);
  return `${availableParallelism()} × ${cpu?.model.trim() ?? "unknown CPU"}, ${memoryGib} GiB, ${type()} ${release()}, Node ${process.version}`;
}
