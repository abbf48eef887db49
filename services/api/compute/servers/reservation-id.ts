/** The digits of a request's id of which a reservation id is made. */
const HEX_DIGITS = 10;
const DIGITS = 8;

/** Returns the reservation id of a call, derived from its request id so that it need not be stored. */
export function reservationIdOf(requestId: string): string {
  const bits = Number.parseInt(requestId.replace(/[^0-9a-f]/g, "").slice(-HEX_DIGITS) || "0", 16);
  return `r-${bits.toString(36).padStart(DIGITS, "0").slice(-DIGITS)}`;
}

/** Returns the last digits of the request ids that have the reservation id, or null for a text that is the reservation id of none. */
export function requestDigitsOf(reservationId: string): string | null {
  if (!/^r-[0-9a-z]{8}$/.test(reservationId)) return null;
  let bits = 0n;
  for (const digit of reservationId.slice(2)) bits = bits * 36n + BigInt(Number.parseInt(digit, 36));
  const digits = bits.toString(16).padStart(HEX_DIGITS, "0");
  return digits.length > HEX_DIGITS ? null : digits;
}
