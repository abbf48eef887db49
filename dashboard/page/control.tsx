import { durationText } from "../../runtime/duration-text.ts";
import {
  LAWS_FRESH_MS,
  type LiveCell,
  type LiveConductor,
  type LiveScheduler,
} from "../../services/api/dashboard/live-picture.ts";
import { byName, countText, numberText } from "./format.ts";
import { cellRate, picture, samples } from "./live-state.ts";

export const LAWS = [
  "No oversubscription",
  "No orphans",
  "No up-calls",
  "One home",
  "Every request ends",
  "A copy exists",
] as const;

/** The six laws as lamps. */
export function Lamps() {
  const laws = picture.value?.figures.laws ?? null;
  const isFresh = laws !== null && Date.now() - laws.at < LAWS_FRESH_MS;
  return (
    <ul class="lamps" aria-label="The six laws">
      {LAWS.map((name, index) => {
        const broken = laws?.broken.filter(({ law }) => law === index + 1) ?? [];
        const isChecked = isFresh && !laws.unchecked.includes(index + 1);
        const state = isFresh && broken.length > 0 ? "broken" : isChecked ? "holds" : "unknown";
        const why =
          state === "unknown"
            ? isFresh
              ? "not every host has told what runs there"
              : "no audit reports here"
            : broken.map(({ subject, evidence }) => `${subject}: ${evidence}`).join("\n");
        return (
          <li key={name} class={`lamp ${state}`} title={why}>
            <i aria-hidden="true" />
            {name}
            <span class="visually-hidden">: {state}</span>
          </li>
        );
      })}
    </ul>
  );
}

/** Schedulers, conductors and views: what each of them does, which of them live, and how far behind each view is. */
export function Control() {
  const held = picture.value;
  if (held === null) return null;
  const { schedulers, laws } = held.figures;
  return (
    <section class="card" aria-labelledby="control-title">
      <header class="card-head">
        <h2 id="control-title">Schedulers and conductors</h2>
      </header>
      {schedulers.length === 0 ? <p class="muted">No scheduler is known to live.</p> : <Schedulers all={schedulers} />}
      <Conductors cells={held.cells} />
      {laws !== null && laws.broken.length > 0 && (
        <>
          <h3>Broken laws</h3>
          <ul class="plain">
            {laws.broken.map(({ law, subject, evidence }) => (
              <li key={`${law} ${subject}`} class="bad">
                {law === "volumes" ? "Volumes in Cinder" : (LAWS[law - 1] ?? "Server groups")}: {subject}: {evidence}
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}

const rateText = (rate: number | null): string => (rate === null ? "–" : `${numberText(rate)} / s`);

function Schedulers({ all }: { readonly all: readonly LiveScheduler[] }) {
  return (
    <div class="wide">
      <table class="figures">
        <thead>
          <tr>
            <th scope="col">Scheduler</th>
            <th scope="col">Placed</th>
            <th scope="col">No valid host</th>
            <th scope="col">Races lost</th>
            <th scope="col">Time in the queue</th>
          </tr>
        </thead>
        <tbody>
          {all.map(({ id, placed, refused, racesLost, queueAgeMs }) => (
            <tr key={id}>
              <th scope="row" class="mono" title={id}>
                {id.slice(0, 8)}
              </th>
              <td>{rateText(placed)}</td>
              <td class={(refused ?? 0) > 0 ? "bad" : ""}>{rateText(refused)}</td>
              <td>{rateText(racesLost)}</td>
              <td>{queueAgeMs === null ? "–" : durationText(queueAgeMs)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Conductors({ cells }: { readonly cells: readonly LiveCell[] }) {
  const all = samples.value;
  return (
    <div class={`wide ${cells.length > 12 ? "long" : ""}`}>
      <table class="figures">
        <thead>
          <tr>
            <th scope="col">Cell</th>
            <th scope="col">Conductors</th>
            <th scope="col">Active</th>
            <th scope="col">Hops</th>
            <th scope="col">View behind</th>
            <th scope="col">State</th>
          </tr>
        </thead>
        <tbody>
          {cells.map(({ name, conductors, lagMs, ready, answers }, index) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td>
                {lastOfEach(conductors).map((one) => (
                  <Conductor key={one.id} conductor={one} cell={name} isKnown={answers} />
                ))}
              </td>
              <td>{rateText(cellRate(all, index, 0))}</td>
              <td>{rateText(cellRate(all, index, 1))}</td>
              <td>{lagMs === null ? "–" : durationText(lagMs)}</td>
              <td class={ready && answers ? "" : "bad"}>
                {answers ? (ready ? "follows" : "view loads") : "does not answer"}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** What is known of a conductor in a cell that does not answer is shown as old. */
function Conductor({ conductor, cell, isKnown }: { conductor: LiveConductor; cell: string; isKnown: boolean }) {
  const { name, alive, tasks } = conductor;
  const lease = alive ? "holds its lease" : "lease over";
  const shortName = name.startsWith(`${cell}-`) ? name.slice(cell.length + 1) : name;
  return (
    <span class={`chip ${!isKnown ? "stale" : alive ? "success" : "failed"}`} title={name}>
      {shortName}{" "}
      <small>{isKnown ? `${lease}${tasks > 0 ? ` · ${countText(tasks, "task")}` : ""}` : `last seen: ${lease}`}</small>
    </span>
  );
}

/**
 * For each name, the living conductor, or else one that is gone. A conductor that is started again is listed beside the old
 * one of the same name.
 */
function lastOfEach(conductors: readonly LiveConductor[]): readonly LiveConductor[] {
  const alive = new Set(conductors.filter((one) => one.alive).map(({ name }) => name));
  const shown = conductors.filter((one) => one.alive || !alive.has(one.name));
  return [...new Map(shown.map((one) => [one.name, one])).values()].sort(byName(({ name }) => name));
}
