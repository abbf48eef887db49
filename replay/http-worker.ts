import { parentPort, workerData } from "node:worker_threads";
import { TurnQueue } from "../runtime/turn-queue.ts";
import { PoolSender } from "./pool-sender.ts";
import type { NumberedAnswer, NumberedCall } from "./worker-sender.ts";

// The thread of a WorkerSender. It receives calls and sends back answers, those of one turn together.
const sender = new PoolSender(workerData as { readonly apiUrl: string; readonly connections: number });
const answers = new TurnQueue<NumberedAnswer>((told) => parentPort?.postMessage(told));

parentPort?.on("message", (calls: readonly NumberedCall[]) => {
  for (const call of calls) {
    sender.send(call).then(
      (answer) => answers.add({ id: call.id, ...answer }),
      (error: Error) => answers.add({ id: call.id, error: error.message }),
    );
  }
});
