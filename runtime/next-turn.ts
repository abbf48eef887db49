/** Resolves in a later turn of the event loop: whatever waits to be received, answered or timed out has its turn first. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
