import { expect, test } from "vitest";
import type { Bus, PublishOptions } from "../runtime/bus.ts";
import { ManualClock } from "../runtime/manual-clock.ts";
import { FAIR_WEATHER, Network } from "./network.ts";
import { simBus } from "./sim-bus.ts";
import type { SimProcess } from "./sim-process.ts";
import type { World } from "./world.ts";

interface Stored {
  readonly subject: string;
  readonly options: PublishOptions | undefined;
}

test("a world whose streams copy messages stores each task again within a minute, without its id, and no other message", async () => {
  const clock = new ManualClock(0);
  const stored: Stored[] = [];
  const bus = {
    publish: async (subject: string, _: Uint8Array, options?: PublishOptions) => void stored.push({ subject, options }),
  } as unknown as Bus;
  const process = {
    onKill: () => {},
    call: (_: string, work: () => Promise<unknown>) => work(),
  } as unknown as SimProcess;
  const network = new Network(1, { ...FAIR_WEATHER, copiedShare: 1 });
  const world = { network, clock } as unknown as Pick<World, "network" | "clock">;
  const connected = simBus(process, "broker", bus, world);
  const options = { id: "task-1", headers: { traceparent: "x" } };
  for (const subject of ["cell.one.tasks", "cell.one.events"])
    await connected.publish(subject, new Uint8Array(), options);
  expect(stored).toEqual([
    { subject: "cell.one.tasks", options },
    { subject: "cell.one.events", options },
  ]);
  clock.advance(60_000);
  expect(stored.slice(2)).toEqual([{ subject: "cell.one.tasks", options: { headers: { traceparent: "x" } } }]);
  clock.advance(60_000);
  expect(stored).toHaveLength(3);
});
