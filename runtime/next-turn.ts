/** Resolves in a later turn of the event loop, after whatever waits to be received, answered or timed out. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
