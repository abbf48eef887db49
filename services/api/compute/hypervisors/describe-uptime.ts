const SECOND_MS = 1_000;
const MINUTES_PER_DAY = 24 * 60;

/**
 * Describes how long a host has been up, in the words of the command `uptime`: ` 14:05:31 up 3 days,  1:06`. Null when that is unknown.
 * Nova's text continues with the users and the load, which are not known here.
 */
export function describeUptime(bootedAtMs: number, nowMs: number): string | null {
  if (bootedAtMs <= 0) return null;
  const minutes = Math.max(0, Math.floor((nowMs - bootedAtMs) / (60 * SECOND_MS)));
  const days = Math.floor(minutes / MINUTES_PER_DAY);
  const hours = Math.floor((minutes % MINUTES_PER_DAY) / 60);
  const rest = minutes % 60;
  const clock = new Date(nowMs).toISOString().slice(11, 19);
  const ofDays = days === 0 ? "" : `${days} ${days === 1 ? "day" : "days"}, `;
  const ofHours = hours === 0 ? `${rest} min` : `${String(hours).padStart(2)}:${String(rest).padStart(2, "0")}`;
  return ` ${clock} up ${ofDays}${ofHours}`;
}
