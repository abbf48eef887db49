import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { MemoryApiStore } from "../../../../adapters/memory/api/memory-api-store.ts";
import { MemoryQuotaStore } from "../../../../adapters/memory/api/memory-quota-store.ts";
import { bareSpec } from "../../../../core/tasks/server-spec.ts";
import { systemClock } from "../../../../runtime/clock.ts";
import { serverSpec } from "../../../../test/contract/cell-fixtures.ts";
import type { ApiEvents } from "../../events.ts";
import { QUOTA_DEFAULTS } from "../quotas/quota-defaults.ts";
import { RequestAcceptor } from "./request-acceptor.ts";

test.each([null, 10])(
  "refuses a call whose UUID was closed while its volumes were made (limit of open requests: %s)",
  async (openMax) => {
    const store = new MemoryApiStore({ clock: systemClock });
    const announced: unknown[] = [];
    const acceptor = new RequestAcceptor(
      {
        store,
        quotas: null,
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

test("before volumes are made, a call is reduced to what its quota has room for, or refused when that is too little", async () => {
  const quotas = new MemoryQuotaStore({ clock: systemClock });
  const store = new MemoryApiStore({ clock: systemClock, quotas });
  const defaults = { ...QUOTA_DEFAULTS.nova, instances: 3 };
  const acceptor = new RequestAcceptor(
    {
      ...{ store, quotas, unified: null, reservations: { reserve: async () => undefined } },
      ...{ bus: { publish: async () => undefined }, events: { accepted: () => {} } as unknown as ApiEvents },
    },
    {
      openRequestsMax: null,
      batchMax: 10,
      batchesInFlight: 1,
      queuedMax: 10,
      publishesInFlightMax: 10,
      quotas: defaults,
    },
  );
  const specs = [1, 2, 3, 4].map((server) => serverSpec(server));
  expect(await acceptor.fitting(specs, 1)).toEqual(specs.slice(0, 3));
  expect(await acceptor.fitting(specs.slice(0, 3), 3)).toEqual(specs.slice(0, 3));
  await expect(acceptor.fitting(specs, 4)).rejects.toMatchObject({ status: 403 });
  await acceptor.accept(specs.slice(0, 2), 2, {});
  expect(await acceptor.fitting(specs.slice(2), 1)).toEqual([specs[2]]);
  await acceptor.accept(specs.slice(2, 3), 1, {});
  await expect(acceptor.fitting(specs.slice(3), 1)).rejects.toThrow(
    /^Quota exceeded for instances: Requested 1, but already used 3 of 3/,
  );
});
