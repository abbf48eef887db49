/** Resolves with the first answer of `read` that is neither null, undefined nor false; asks every 5 ms for up to 15 s. */
export async function eventually<Answer>(
  what: string,
  read: () => Answer | null | undefined | false | Promise<Answer | null | undefined | false>,
): Promise<Answer> {
  const deadline = performance.now() + 15_000;
  for (;;) {
    const answer = await read();
    if (answer !== null && answer !== undefined && answer !== false) return answer;
    if (performance.now() > deadline) throw new Error(`waited in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
