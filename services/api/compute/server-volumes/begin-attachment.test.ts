import { expect, test } from "vitest";
import type { ServerStatus } from "../../../../core/tasks/server.ts";
import type { ActionTarget } from "../server-actions/action-target.ts";
import { isOffloaded, requireAttachable } from "./begin-attachment.ts";

test.each<[ServerStatus, string | null, boolean]>([
  ["SHELVED_OFFLOADED", null, true],
  // Shown so when the server is deleted softly while it is offloaded.
  ["SOFT_DELETED", null, true],
  ["SOFT_DELETED", "host-0", false],
  ["SHELVED", "host-0", false],
])("the volumes of a server that is %s on host %s change without a host: %s", (status, host, isWithout) => {
  const target = { action: "attach_volume", server: { uuid: "u", status, host } } as unknown as ActionTarget;
  expect(() => requireAttachable(target, { minor: 96 })).not.toThrow();
  expect(isOffloaded(target)).toBe(isWithout);
});
