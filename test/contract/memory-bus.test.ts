import { busContract } from "./bus.contract.ts";
import { memoryBusSubject } from "./memory-bus-subject.ts";

busContract("memory", async () => memoryBusSubject((broker, permissions) => broker.connect(permissions)));
