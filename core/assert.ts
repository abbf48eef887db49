/** A programmer's error: something that no input may bring about. Never caught to be survived, never part of an outcome. */
export class AssertionError extends Error {
  override readonly name = "AssertionError";
}

/** Throws an `AssertionError` unless the condition holds. Kept on in production. */
export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new AssertionError(message);
}
