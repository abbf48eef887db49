/** Resolves in a later turn of the event loop, after everything that is ready to be received, answered or timed out. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
