/**
 * Resolves with the first answer of `read` that is not null, undefined or false. Reads every 5 ms, by default for up to 30 s; whole
 * processes take longer.
 */
export async function eventually<Answer>(
  what: string,
  read: () => Answer | null | undefined | false | Promise<Answer | null | undefined | false>,
  { everyMs = 5, withinMs = 30_000 }: { readonly everyMs?: number; readonly withinMs?: number } = {},
): Promise<Answer> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const answer = await read();
    if (answer !== null && answer !== undefined && answer !== false) return answer;
    if (performance.now() > deadline) throw new Error(`waited in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}
