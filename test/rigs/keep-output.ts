import { vi } from "vitest";

/** Runs a command in this process. Resolves with its exit code and all that it wrote to standard output and standard error. */
export async function keepOutput(
  run: () => Promise<number>,
): Promise<{ readonly code: number; readonly text: string }> {
  let text = "";
  const keep = (chunk: unknown): boolean => {
    text += String(chunk);
    return true;
  };
  const spies = [vi.spyOn(process.stdout, "write"), vi.spyOn(process.stderr, "write")];
  for (const spy of spies) spy.mockImplementation(keep);
  try {
    return { code: await run(), text };
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
}
