import { useState } from "preact/hooks";
import type { LiveSample } from "../../services/api/dashboard/live-picture.ts";
import { classText, numberText, percentText } from "./format.ts";
import { picture, samples, shownClass } from "./live-state.ts";

/** The chart is drawn on these units, and stretched to its box. */
const WIDE = 1_000;
const TALL = 200;

interface Point {
  readonly at: number;
  readonly used: number;
  readonly capacity: number;
}

/** How much of the chosen class the whole cloud has and uses, over the last hour. */
export function CapacityChart() {
  const [pointedAt, setPointedAt] = useState<number | null>(null);
  const held = picture.value;
  if (held === null) return null;
  const points = pointsOf(held.history, shownClass.value);
  const name = classText(held.classes[shownClass.value] ?? "");
  const [first, last] = [points[0], points.at(-1)];
  if (first === undefined || last === undefined) return null;
  const spanMs = Math.max(1, last.at - first.at);
  const most = Math.max(1, ...points.map(({ used, capacity }) => Math.max(used, capacity)));
  const x = ({ at }: Point) => (WIDE * (at - first.at)) / spanMs;
  const y = (amount: number) => TALL - (0.94 * TALL * amount) / most;
  const lineOf = (amountOf: (point: Point) => number) =>
    points.map((point) => `${x(point).toFixed(1)},${y(amountOf(point)).toFixed(1)}`).join(" ");
  const used = lineOf((point) => point.used);
  const shown = pointedAt === null ? last : nearest(points, first.at + pointedAt * spanMs);
  const low = Math.min(...points.map((point) => point.used));
  const high = Math.max(...points.map((point) => point.used));
  const label = `${name} in use over the last ${spanText(spanMs)}: between ${numberText(low)} and ${numberText(high)}, now ${numberText(last.used)} of ${numberText(last.capacity)}`;
  return (
    <section class="card" aria-labelledby="capacity-title">
      <header class="card-head">
        <h2 id="capacity-title">Capacity over time</h2>
        <p class="muted small read-out">
          {pointedAt === null ? "now" : new Date(shown.at).toISOString().slice(11, 19)}: <b>{numberText(shown.used)}</b>{" "}
          of {numberText(shown.capacity)} {name} in use ({percentText(shown.used, shown.capacity)})
        </p>
      </header>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the pointer only shows figures of the past; the label of the picture tells the same span in words. */}
      <div
        class="chart"
        onMouseMove={(event) => {
          const box = event.currentTarget.getBoundingClientRect();
          setPointedAt(Math.max(0, Math.min(1, (event.clientX - box.left) / box.width)));
        }}
        onMouseLeave={() => setPointedAt(null)}
      >
        <svg viewBox={`0 0 ${WIDE} ${TALL}`} preserveAspectRatio="none" role="img" aria-label={label}>
          {[0.25, 0.5, 0.75].map((share) => (
            <line key={share} class="grid" x1="0" x2={WIDE} y1={y(share * most)} y2={y(share * most)} />
          ))}
          <polygon class="used" points={`0,${TALL} ${used} ${x(last).toFixed(1)},${TALL}`} />
          <polyline class="used-line" points={used} />
          <polyline class="capacity-line" points={lineOf((point) => point.capacity)} />
          {pointedAt !== null && <line class="cursor" x1={x(shown)} x2={x(shown)} y1="0" y2={TALL} />}
        </svg>
      </div>
      <div class="chart-foot muted small">
        <span>{spanText(spanMs)} ago</span>
        <span class="chart-key">
          <i class="key used" aria-hidden="true" /> in use
          <i class="key capacity" aria-hidden="true" /> capacity
        </span>
        <span>now</span>
      </div>
    </section>
  );
}

/** The api's samples up to the first own one, and then the own ones, which are taken each second. */
function pointsOf(history: readonly LiveSample[], classIndex: number): readonly Point[] {
  const own = samples.value.map(({ at, amounts }) => ({ at, ...(amounts[classIndex] ?? { used: 0, capacity: 0 }) }));
  const [oldest] = own;
  const older = history
    .filter(([at]) => oldest === undefined || at < oldest.at)
    .map(([at, ...amounts]) => ({
      at,
      used: amounts[2 * classIndex] ?? 0,
      capacity: amounts[2 * classIndex + 1] ?? 0,
    }));
  return [...older, ...own];
}

function nearest(points: readonly Point[], at: number): Point {
  return points.reduce((best, point) => (Math.abs(point.at - at) < Math.abs(best.at - at) ? point : best));
}

function spanText(ms: number): string {
  return ms < 90_000 ? `${Math.round(ms / 1_000)} s` : `${Math.round(ms / 60_000)} min`;
}
