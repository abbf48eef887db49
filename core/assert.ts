/**
 * A programmer's error: a state that no input may cause. It is never caught in order to continue, and never part of an
 * outcome.
 */
export class AssertionError extends Error {
  override readonly name = "AssertionError";
}

/** Throws an `AssertionError` unless the condition holds. Kept on in production. */
export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new AssertionError(message);
}
