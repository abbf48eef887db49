import { decisionStoreContract } from "../../../test/contract/decision-store.contract.ts";
import { MemoryDecisionStore } from "./memory-decision-store.ts";

decisionStoreContract("memory", async () => new MemoryDecisionStore());
