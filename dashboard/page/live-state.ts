import { batch, signal } from "@preact/signals";
import type { LiveCellCounts, LiveCounts } from "../../services/api/dashboard/live-picture.ts";
import {
  applyLiveChange,
  type HeldPicture,
  holdPicture,
  type LiveEvent,
  liveAmountOf,
  readLiveEvents,
} from "../../services/api/dashboard/read-live-events.ts";
import { apiHeaders } from "./call-api.ts";

const RETRY_MS = [500, 1_000, 2_000, 4_000];
/** The connection is given up after this time without any event, even a heartbeat. */
const SILENCE_MS = 25_000;
const RATE_WINDOW_MS = 5_000;
const SAMPLES_MAX = 240;

export type Connection = "connecting" | "live" | "lost" | "refused";

/** One point of the trends, about once a second. */
export interface Sample {
  readonly at: number;
  readonly counts: LiveCounts;
  readonly cellCounts: readonly LiveCellCounts[];
  /** By class: used and capacity of the whole cloud. */
  readonly amounts: readonly { readonly used: number; readonly capacity: number }[];
}

export const connection = signal<Connection>("connecting");
/** Why the api refused. */
export const refusal = signal("");
/** Null until the first picture has come. A new object with each change; its maps are the same ones. */
export const picture = signal<HeldPicture | null>(null);
/** The time, twice a second: everything that counts up does so at once, which costs one frame and not one for each. */
export const ticked = signal(Date.now());
/** Rises with each whole picture. */
export const pictureNumber = signal(0);
/** The place in `classes` of the class that is shown. */
export const shownClass = signal(0);
export const samples = signal<readonly Sample[]>([]);

let lastId = "";
/** The api's run of the model that the counts belong to. */
let run = "";
let abort: AbortController | null = null;

/** Follows the api until the page is closed. Called again with another token, it begins again. */
export async function followApi(): Promise<void> {
  abort?.abort();
  const mine = new AbortController();
  abort = mine;
  for (let tries = 0; !mine.signal.aborted; tries += 1) {
    const how = await readOnce(mine);
    if (how !== "failed") tries = 0;
    if (connection.value === "refused") return;
    if (mine.signal.aborted) return;
    // The api ends each stream after some minutes. Only if it cannot be reached then is the connection lost.
    if (how !== "ended") connection.value = "lost";
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS[Math.min(tries, RETRY_MS.length - 1)]));
  }
}

/** `ended`: the api has ended the stream. `broken`: it broke off while it was read. */
async function readOnce(mine: AbortController): Promise<"ended" | "broken" | "failed"> {
  const ending = new AbortController();
  const end = () => ending.abort();
  mine.signal.addEventListener("abort", end);
  let timer = setTimeout(end, SILENCE_MS);
  let got: "ended" | "broken" | "failed" = "failed";
  try {
    const response = await fetch("/berth/v1/live", {
      headers: { ...apiHeaders(), ...(lastId !== "" && { "last-event-id": lastId }) },
      signal: ending.signal,
      cache: "no-store",
    });
    if (response.status === 401 || response.status === 403) {
      refusal.value = response.status === 401 ? "" : "This token does not belong to an admin.";
      connection.value = "refused";
      return "failed";
    }
    if (!response.ok || response.body === null) return "failed";
    const heard = () => {
      clearTimeout(timer);
      timer = setTimeout(end, SILENCE_MS);
    };
    connection.value = "live";
    for await (const event of readLiveEvents(piecesOf(response.body, heard))) {
      got = "broken";
      take(event);
    }
    if (got === "broken") got = "ended";
  } catch {
    // The loop tries again, and shows meanwhile that the connection is lost.
  } finally {
    clearTimeout(timer);
    mine.signal.removeEventListener("abort", end);
  }
  return got;
}

/** Not every browser can iterate over a stream. */
async function* piecesOf(body: ReadableStream<Uint8Array>, heard: () => void): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    heard();
    yield value;
  }
}

function take(event: LiveEvent): void {
  lastId = event.id;
  if (event.kind === "picture") {
    batch(() => {
      picture.value = holdPicture(event.picture);
      pictureNumber.value += 1;
      if (event.id.split("-")[0] !== run) samples.value = [];
    });
    run = event.id.split("-")[0] ?? "";
  } else if (picture.value !== null) picture.value = applyLiveChange(picture.value, event.change);
}

/** Takes a sample of the cloud for the trends. */
export function takeSample(): void {
  const held = picture.value;
  if (held === null || connection.value !== "live") return;
  const amounts = held.classes.map(() => ({ used: 0, capacity: 0 }));
  for (const row of held.hosts.values()) {
    for (const [index, sum] of amounts.entries()) {
      const { used, capacity } = liveAmountOf(row, index);
      sum.used += used;
      sum.capacity += capacity;
    }
  }
  const { counts, cellCounts } = held.figures;
  samples.value = [...samples.value.slice(1 - SAMPLES_MAX), { at: Date.now(), counts, cellCounts, amounts }];
}

/** A count's events a second over the last few seconds, as of the sample at `index`. */
export function rateAt(all: readonly Sample[], index: number, count: keyof LiveCounts): number {
  return rateOf(all, index, ({ counts }) => counts[count]);
}

/** The same for a count of one cell, now: 0 became active, 1 hops, 2 failed. */
export function cellRate(all: readonly Sample[], cell: number, count: 0 | 1 | 2): number {
  return rateOf(all, all.length - 1, ({ cellCounts }) => cellCounts[cell]?.[count] ?? 0);
}

function rateOf(all: readonly Sample[], index: number, countIn: (sample: Sample) => number): number {
  const last = all[index];
  if (last === undefined) return 0;
  const first = all.find(({ at }) => at >= last.at - RATE_WINDOW_MS) ?? last;
  const seconds = (last.at - first.at) / 1000;
  return seconds <= 0 ? 0 : Math.max(0, countIn(last) - countIn(first)) / seconds;
}
