import { agentLinkContract } from "../../test/contract/agent-link.contract.ts";
import { MemoryNetwork } from "./memory-network.ts";

agentLinkContract("memory", async () => {
  const network = new MemoryNetwork();
  return { listener: network.listen("conductor-1"), dialer: network.dialer(), nobody: "conductor-2" };
});
