import { durationText } from "../../runtime/duration-text.ts";
import { LAWS_FRESH_MS, type LiveCell } from "../../services/api/dashboard/live-picture.ts";
import { byName } from "./format.ts";
import { picture } from "./live-state.ts";

export const LAWS = [
  "No oversubscription",
  "No orphans",
  "No up-calls",
  "One home",
  "Every request ends",
  "A copy exists",
] as const;

type Conductor = LiveCell["conductors"][number];

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

/** Schedulers, conductors and views: which of them live, and how far behind each view is. */
export function Control() {
  const held = picture.value;
  if (held === null) return null;
  const { schedulers, laws } = held.figures;
  return (
    <section class="card" aria-labelledby="control-title">
      <header class="card-head">
        <h2 id="control-title">Schedulers and conductors</h2>
      </header>
      <p>
        <b>{schedulers.length}</b> {schedulers.length === 1 ? "scheduler" : "schedulers"}{" "}
        <span class="muted mono small">{schedulers.map((id) => id.slice(0, 8)).join(" ")}</span>
      </p>
      <div class="wide">
        <table>
          <thead>
            <tr>
              <th scope="col">Cell</th>
              <th scope="col">Conductors</th>
              <th scope="col">View behind</th>
              <th scope="col">State</th>
            </tr>
          </thead>
          <tbody>
            {held.cells.map(({ name, conductors, lagMs, ready, answers }) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td>
                  {lastOfEach(conductors).map((one) => (
                    <span key={one.id} class={`chip ${one.alive ? "success" : "failed"}`}>
                      {one.name}
                      <small> {one.alive ? "holds its lease" : "lease over"}</small>
                    </span>
                  ))}
                </td>
                <td>{lagMs === null ? "–" : durationText(lagMs)}</td>
                <td class={ready && answers ? "" : "bad"}>
                  {answers ? (ready ? "follows" : "view loads") : "does not answer"}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {laws !== null && laws.broken.length > 0 && (
        <>
          <h3>Broken laws</h3>
          <ul class="plain">
            {laws.broken.map(({ law, subject, evidence }) => (
              <li key={`${law} ${subject}`} class="bad">
                {LAWS[law - 1] ?? "Server groups"}: {subject}: {evidence}
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}

/**
 * For each name, the living conductor, or else one that is gone. A conductor that is started again is listed beside the old
 * one of the same name.
 */
function lastOfEach(conductors: readonly Conductor[]): readonly Conductor[] {
  const alive = new Set(conductors.filter((one) => one.alive).map(({ name }) => name));
  const shown = conductors.filter((one) => one.alive || !alive.has(one.name));
  return [...new Map(shown.map((one) => [one.name, one])).values()].sort(byName(({ name }) => name));
}
