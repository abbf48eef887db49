/** The longest address at which a driver may say that a prepared guest listens. */
export const LISTENS_AT_CHARS_MAX = 4_096;

/**
 * Whether the address, of whatever driver, says that the prepared guest waits for nothing of the guest that moves, because it was made from an image. Nothing else of
 * an address is read by conductors.
 */
export const isOfGuestThatTakesNothing = (listensAt: string): boolean => listensAt.endsWith("://nothing");
