import { limitSourceContract } from "../../test/contract/limit-source.contract.ts";
import { MemoryLimitSource } from "./memory-limit-source.ts";

limitSourceContract("memory", async () => {
  const source = new MemoryLimitSource();
  return {
    source,
    projects: ["p1", "p2"],
    set: async (projectId, resource, limit) => source.set(projectId, resource, limit),
    close: async () => undefined,
  };
});
