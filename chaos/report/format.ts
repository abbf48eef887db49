import { distinctDigits } from "../../runtime/distinct-digits.ts";
import { type Html, html } from "./html.ts";

/** A duration for people: `0.4 ms`, `412 ms`, `1.24 s`, `83 s`, `12 min`. */
export function formatMs(ms: number): string {
  if (ms < 1) return ms === 0 ? "0 ms" : `${ms.toFixed(1)} ms`;
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 9_995) return `${(ms / 1_000).toFixed(2)} s`;
  if (ms < 99_950) return `${(ms / 1_000).toFixed(1)} s`;
  if (ms < 600_000) return `${Math.round(ms / 1_000)} s`;
  return `${Math.round(ms / 60_000)} min`;
}

/** A round duration on an axis: `1 s`, `100 ms`. */
export function formatRoundMs(ms: number): string {
  return formatMs(ms).replace(/\.0+ /, " ");
}

/** A moment of a run: `12.3 s`. */
export function formatMoment(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}

export function formatCount(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, " ");
}

/** `n` servers, `1` server. */
export function plural(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/** Shortens a text to at most `lengthMax` characters. */
export function shorten(text: string, lengthMax: number): string {
  const characters = [...text];
  return characters.length <= lengthMax ? text : `${characters.slice(0, lengthMax - 1).join("")}…`;
}

/** The distinct digits of a UUID, with the whole UUID as a tooltip. */
export function shortUuid(uuid: string): Html {
  return html`<code title="${uuid}">${distinctDigits(uuid)}</code>`;
}
