import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { MemoryApiStore } from "../../../../adapters/memory/api/memory-api-store.ts";
import { bareSpec } from "../../../../core/tasks/server-spec.ts";
import { systemClock } from "../../../../runtime/clock.ts";
import { serverSpec } from "../../../../test/contract/cell-fixtures.ts";
import type { ApiEvents } from "../../events.ts";
import { RequestAcceptor } from "./request-acceptor.ts";

test.each([null, 10])(
  "refuses a call whose UUID was closed while its volumes were made (limit of open requests: %s)",
  async (openMax) => {
    const store = new MemoryApiStore({ clock: systemClock });
    const announced: unknown[] = [];
    const acceptor = new RequestAcceptor(
      {
        store,
        reservations: { reserve: async () => undefined },
        bus: { publish: async (_subject, _message) => void announced.push(_subject) },
        events: { accepted: (count: number) => announced.push(count) } as unknown as ApiEvents,
        unified: null,
      },
      {
        openRequestsMax: openMax,
        batchMax: 10,
        batchesInFlight: 1,
        queuedMax: 10,
        publishesInFlightMax: 10,
        quotas: null,
      },
    );
    const spec = serverSpec(1, { uuid: randomUUID() });
    await store.accept([bareSpec(spec.uuid)]);
    await expect(acceptor.accept([spec], 1, {})).rejects.toMatchObject({ status: 503 });
    await expect(acceptor.accept([spec], 1, {})).rejects.toThrow(
      /^The volumes and ports of the servers were not ready in time/,
    );
    expect(announced).toEqual([]);
  },
);
