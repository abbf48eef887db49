import { reservationStoreContract } from "../../../test/contract/reservation-store.contract.ts";
import { serverGroupStoreContract } from "../../../test/contract/server-group-store.contract.ts";
import { MemoryApiStore } from "./memory-api-store.ts";
import { MemoryReservationStore } from "./memory-reservation-store.ts";
import { MemoryServerGroupStore } from "./memory-server-group-store.ts";

serverGroupStoreContract("memory", async () => {
  let nowMs = 1_000_000;
  const clock = { now: () => ++nowMs, monotonic: () => nowMs, setTimer: () => ({ cancel: () => undefined }) };
  const requests = new MemoryApiStore({ clock });
  return { store: new MemoryServerGroupStore({ requests }), requests, close: async () => undefined };
});

reservationStoreContract("memory", async () => {
  let nowMs = 1_000_000;
  const clock = { now: () => ++nowMs, monotonic: () => nowMs, setTimer: () => ({ cancel: () => undefined }) };
  const requests = new MemoryApiStore({ clock });
  return { store: new MemoryReservationStore({ clock, requests }), requests, close: async () => undefined };
});
