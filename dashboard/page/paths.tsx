import { computed, effect, signal } from "@preact/signals";
import { durationText } from "../../runtime/duration-text.ts";
import type { LiveAttempt, LivePath } from "../../services/api/dashboard/live-picture.ts";
import { timeText } from "./format.ts";
import { inALaterFrame } from "./frames.ts";
import { picture, rateAt, samples, ticked } from "./live-state.ts";
import { open } from "./open-panel.ts";

const SHOWN_MAX = 40;
const OUTCOMES = {
  all: "all outcomes",
  flight: "in flight",
  hopped: "hopped",
  active: "active",
  error: "failed",
} as const;

const outcome = signal<keyof typeof OUTCOMES>("all");
/** Matches a project, a host, or the server's name or id. */
const words = signal("");

/** The paths as they are drawn. They follow the picture in a frame of their own. */
const drawn = signal<readonly LivePath[]>([]);
const redraw = () => {
  drawn.value = [...(picture.peek()?.paths.values() ?? [])];
};
effect(() => {
  if (picture.value !== null) inALaterFrame(redraw);
});

/** From so many new requests a second on, the list moves away under the pointer before a row can be clicked, so it waits. */
const WAITS_FROM_RATE = 4;
/** The ids that are shown while the list waits for somebody who points at it. */
const heldStill = signal<readonly string[] | null>(null);

const shown = computed(() => {
  if (heldStill.value !== null) {
    const byId = new Map(drawn.value.map((path) => [path.id, path]));
    return heldStill.value.map((id) => byId.get(id)).filter((path) => path !== undefined);
  }
  const wanted = words.value.trim().toLowerCase();
  return drawn.value.filter((path) => isOutcome(path) && mentions(path, wanted)).sort((a, b) => b.at - a.at);
});

function holdStill(): void {
  const all = samples.peek();
  const isFast = rateAt(all, all.length - 1, "placed") >= WAITS_FROM_RATE;
  if (isFast && heldStill.value === null) heldStill.value = shown.peek().map(({ id }) => id);
}

function letGo(): void {
  heldStill.value = null;
}

function isOutcome(path: LivePath): boolean {
  if (outcome.value === "all") return path.state !== "deleted" || path.attempts.length > 0;
  if (outcome.value === "flight") return path.endedAt === null;
  if (outcome.value === "hopped") return path.attempts.length > 1;
  return path.state === outcome.value;
}

function mentions({ name, id, project, attempts }: LivePath, wanted: string): boolean {
  if (wanted === "") return true;
  return [name, id, project, ...attempts.map(({ host }) => host)].some((text) => text.toLowerCase().includes(wanted));
}

export function Paths() {
  const paths = shown.value;
  return (
    <section class="card" aria-labelledby="paths-title">
      <header class="card-head">
        <h2 id="paths-title">Requests</h2>
        <label class="choice">
          <span>Show</span>
          <select
            value={outcome.value}
            onChange={(event) => {
              outcome.value = event.currentTarget.value as keyof typeof OUTCOMES;
            }}
          >
            {Object.entries(OUTCOMES).map(([key, text]) => (
              <option key={key} value={key}>
                {text}
              </option>
            ))}
          </select>
        </label>
        <label class="choice">
          <span>with</span>
          <input
            type="search"
            placeholder="project, host or server"
            value={words.value}
            onInput={(event) => {
              words.value = event.currentTarget.value;
            }}
          />
        </label>
      </header>
      {paths.length === 0 ? (
        <p class="empty">No requests yet. They appear here as soon as a server is asked for or moved.</p>
      ) : (
        <ul class="paths" onMouseMove={holdStill} onMouseLeave={letGo}>
          {paths.slice(0, SHOWN_MAX).map((path) => (
            <Path key={path.id} path={path} />
          ))}
        </ul>
      )}
      {paths.length > 0 && (
        <p class="muted small more">
          {heldStill.value !== null
            ? "The list waits while you point at it."
            : paths.length > SHOWN_MAX && `and ${paths.length - SHOWN_MAX} more`}
          &nbsp;
        </p>
      )}
    </section>
  );
}

function Path({ path }: { readonly path: LivePath }) {
  return (
    <li class={`path ${path.state}`}>
      <button type="button" class="path-open" onClick={() => open({ kind: "server", server: path.id })}>
        <span class="path-name">
          <b>{path.name}</b>
          <span class="muted small">
            {path.project}
            {path.kind !== "build" && ` · ${path.kind.replaceAll("_", " ")}`}
          </span>
        </span>
        <span class="steps">
          <span class="chip done">
            {path.kind === "build" ? "accepted" : "asked"} <small>{timeText(path.at).slice(0, 8)}</small>
          </span>
          {path.attempts.map((attempt, index) => (
            <AttemptChip key={`${index} ${attempt.host}`} attempt={attempt} isOver={path.endedAt !== null} />
          ))}
          <End path={path} />
        </span>
      </button>
    </li>
  );
}

const MARKS: Readonly<Record<string, string>> = { success: "✓", failed: "✗", skipped: "»", cancelled: "–" };

interface AttemptChipProps {
  readonly attempt: LiveAttempt;
  /** Whether the path has ended. The end of an attempt may become known later than the end of its path, for example while its cell is silent. */
  readonly isOver: boolean;
}

function AttemptChip({ attempt: { host, result, reason, at, endedAt }, isOver }: AttemptChipProps) {
  const isOpen = endedAt === null && !isOver;
  return (
    <>
      <i class="arrow" aria-hidden="true">
        →
      </i>
      <span class={`chip ${result ?? (isOver ? "stale" : "open")}`}>
        {result !== null && <span class="visually-hidden">{result}: </span>}
        {(result !== null || isOpen) && <span aria-hidden="true">{MARKS[result ?? ""] ?? "…"} </span>}
        {host} <small>{isOpen ? <Since at={at} /> : endedAt !== null && durationText(endedAt - at)}</small>
        {reason !== null && result !== "success" && <em>{reason}</em>}
      </span>
    </>
  );
}

function End({ path }: { readonly path: LivePath }) {
  const { state, endedAt, at, fault, attempts } = path;
  if (state === "building" && attempts.length > 0) return null;
  const text = {
    accepted: "waits for a host",
    building: "chosen",
    active: "ACTIVE",
    error: "ERROR",
    deleted: "deleted",
  }[state];
  const isRepeated = attempts.some(({ reason }) => reason !== null && fault?.includes(reason));
  return (
    <>
      <i class="arrow" aria-hidden="true">
        →
      </i>
      <span class={`chip end ${state}`}>
        {text} <small>{endedAt === null ? <Since at={at} /> : `after ${durationText(endedAt - at)}`}</small>
        {fault !== null && !isRepeated && <em>{fault.replace(/ See: berth explain \S+$/, "")}</em>}
      </span>
    </>
  );
}

/** Counts up while something goes on. */
function Since({ at }: { readonly at: number }) {
  return <>{durationText(Math.max(0, ticked.value - at))}</>;
}
