import { statfsSync } from "node:fs";
import { workerData } from "node:worker_threads";
import { MEASURED, type MeterThread, UNREADABLE } from "./disk-meter.ts";

const { path, flag, bytes } = workerData as MeterThread;
try {
  const { blocks, bsize } = statfsSync(path);
  bytes[0] = blocks * bsize;
  Atomics.store(flag, 0, MEASURED);
} catch {
  Atomics.store(flag, 0, UNREADABLE);
}
Atomics.notify(flag, 0);
