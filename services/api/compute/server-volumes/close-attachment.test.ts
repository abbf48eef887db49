import { expect, test } from "vitest";
import type { VolumeRecord } from "../../../../core/stores/api/volume-store.ts";
import type { CellClient } from "../../cells/cell-client.ts";
import { closeAttachment } from "./close-attachment.ts";

/** An attachment that is as old as this when its cell does not know its operation, and what becomes of it. */
async function closed(
  { phaseAgeMs, phase = "attaching" }: { readonly phaseAgeMs: number; readonly phase?: "attaching" | "detaching" },
  { restoredAgoMs, isRefused = false }: { readonly restoredAgoMs: number | null; readonly isRefused?: boolean },
): Promise<string> {
  let became = "nothing";
  const store = {
    release: async () => {
      became = "released";
      return true;
    },
    confirmAttached: async () => {
      became = "attached";
      return true;
    },
  };
  const cellStore = {
    closeTasks: async () => ["closed"],
    restoredAgoMs: async () => restoredAgoMs,
    servers: async () => [{ spec: { volumes: [] } }],
  };
  const operations = async (question: (asked: typeof cellStore) => Promise<unknown>) => ({
    kind: "answer",
    value: await question(cellStore),
  });
  const cell = { operations } as unknown as Pick<CellClient, "operations">;
  const attachment = { serverUuid: "server", taskId: "task", phase, phaseAgeMs };
  const volume = { id: "volume", attachment } as unknown as VolumeRecord;
  await closeAttachment(store, cell, volume, 0, { isRefused });
  return became;
}

test("a volume whose attaching its cell has not begun is released", async () => {
  expect(await closed({ phaseAgeMs: 90_000 }, { restoredAgoMs: null })).toBe("released");
  // The attaching was planned after the restore.
  expect(await closed({ phaseAgeMs: 90_000 }, { restoredAgoMs: 200_000 })).toBe("released");
  expect(await closed({ phaseAgeMs: 0 }, { restoredAgoMs: 5_000, isRefused: true })).toBe("released");
});

test("a volume whose attaching its cell may have carried out and forgotten in a restore stays the server's", async () => {
  expect(await closed({ phaseAgeMs: 90_000 }, { restoredAgoMs: 60_000 })).toBe("attached");
  // The row may have been read a while before the cell was asked.
  expect(await closed({ phaseAgeMs: 90_000 }, { restoredAgoMs: 95_000 })).toBe("attached");
});

test("a volume that was to be detached stays the server's, whatever its cell knows", async () => {
  for (const restoredAgoMs of [null, 60_000])
    expect(await closed({ phaseAgeMs: 90_000, phase: "detaching" }, { restoredAgoMs })).toBe("attached");
});
