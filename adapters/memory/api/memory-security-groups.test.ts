import { systemClock } from "../../../runtime/clock.ts";
import { ownSecurityGroupsContract } from "../../../test/contract/own-security-groups.contract.ts";
import { MemoryApiStore } from "./memory-api-store.ts";
import { MemoryPortStore } from "./memory-port-store.ts";
import { MemorySecurityGroups } from "./memory-security-groups.ts";

ownSecurityGroupsContract("memory", async () => {
  const ports = new MemoryPortStore(systemClock, { requests: new MemoryApiStore({ clock: systemClock }) });
  return { ports, groups: new MemorySecurityGroups(ports) };
});
