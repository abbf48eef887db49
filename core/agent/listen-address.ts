/** The longest address at which a driver may say that a prepared guest listens. */
export const LISTENS_AT_CHARS_MAX = 4_096;
