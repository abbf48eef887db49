const VERSION_AT = 14;

/**
 * Returns eight digits of a UUID by which people tell it from others: the first ones, or the last ones of a UUID of version 7, whose first
 * ones are the minute in which it was made.
 */
export function distinctDigits(uuid: string): string {
  return uuid[VERSION_AT] === "7" ? uuid.slice(-8) : uuid.slice(0, 8);
}
