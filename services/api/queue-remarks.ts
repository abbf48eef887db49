import type { Bus } from "../../runtime/bus.ts";

/** Returns the line of `/readyz` about the work queue, or nothing while the queue is usable. */
export function queueRemarks(bus: Pick<Bus, "streamState">): readonly string[] {
  switch (bus.streamState()) {
    case "there":
      return [];
    case "full":
      return ["the work queue is full: requests are accepted, and placed some seconds later"];
    case "missing":
      return ["the work queue is missing and is being created again"];
    case "away":
      return ["NATS cannot be reached: requests are accepted, and placed some seconds later"];
  }
}
