import { randomUUID } from "node:crypto";
import { networkingContract } from "../../test/contract/networking.contract.ts";
import { MemoryNetworking } from "./memory-networking.ts";

networkingContract("in memory", async () => {
  const twin = new MemoryNetworking({ newId: randomUUID });
  return { networking: twin, twin };
});
