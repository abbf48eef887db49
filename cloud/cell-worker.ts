import { setTimeout as delay } from "node:timers/promises";
import { parentPort, workerData } from "node:worker_threads";
import { ThreadBus } from "../adapters/memory/bus/thread-bus.ts";
import { systemClock } from "../runtime/clock.ts";
import { createLogger } from "../runtime/logger.ts";
import { TurnQueue } from "../runtime/turn-queue.ts";
import { FileJournal } from "../services/compute-agent/file-journal.ts";
import { createMemoryJournal } from "../services/compute-agent/memory-journal.ts";
import { type CellServices, createCellServices } from "./cell-services.ts";
import {
  type CellCall,
  type CellThreadData,
  type CellWord,
  type NumberedCellCall,
  type ObservedWord,
  sentOf,
} from "./cell-thread.ts";
import type { CloudObserver } from "./observe-stores.ts";

// The code that runs inside a CellThread.
const { logLevel, observed } = workerData as CellThreadData;
const logger = createLogger({ name: "cells", level: logLevel });
const cells = new Map<string, CellServices>();
const READY_POLL_MS = 20;

function say(word: CellWord): void {
  parentPort?.postMessage(word);
}

const words = new TurnQueue<ObservedWord>((told) => say({ kind: "observed", words: told }));
const teller: CloudObserver = {
  claimed: (...args) => words.add(["claimed", ...args]),
  attemptFailed: (...args) => words.add(["attemptFailed", ...args]),
  active: (...args) => words.add(["active", ...args]),
  failed: (...args) => words.add(["failed", ...args]),
};

async function carryOut(call: CellCall): Promise<unknown> {
  if (call.kind === "open") return open(call);
  const services = cells.get(call.cell);
  if (services === undefined) throw new Error(`no cell ${call.cell} was opened`);
  if (call.kind === "guests") return services.runningGuests();
  if (call.kind === "copies") return services.copies();
  if (call.kind === "close") return services.close();
  await services.start();
  void tellWhenReady(call.cell, services);
  return undefined;
}

function open({ plan, journal, buses }: Extract<CellCall, { kind: "open" }>): void {
  const ports = [...buses];
  const services = createCellServices({
    ...plan,
    journal: journal === null ? createMemoryJournal() : new FileJournal(journal),
    connectBus: () => new ThreadBus(ports.shift()!),
    clock: systemClock,
    logger,
    observer: observed ? teller : null,
    fail: (error) => say({ kind: "cannotGoOn", error: sentOf(error) }),
  });
  cells.set(plan.name, services);
}

async function tellWhenReady(cell: string, services: CellServices): Promise<void> {
  while (!services.ready) await delay(READY_POLL_MS);
  say({ kind: "ready", cell });
}

parentPort?.on("message", ({ id, call }: NumberedCellCall) => {
  carryOut(call).then(
    (value) => say({ kind: "done", id, value }),
    (error: unknown) => say({ kind: "failed", id, error: sentOf(error) }),
  );
});
