import { durationText } from "../../runtime/duration-text.ts";
import type { LiveCounts } from "../../services/api/dashboard/live-picture.ts";
import { classText, numberText, percentText } from "./format.ts";
import { picture, rateAt, samples, shownClass } from "./live-state.ts";

/** The stages of requests with counts and rates, and how full the cloud is. */
export function Summary() {
  const held = picture.value;
  if (held === null) return null;
  const { figures } = held;
  const all = samples.value;
  const rates = (count: keyof LiveCounts) => all.map((_, index) => rateAt(all, index, count));
  const shares = all.map(({ amounts }) => {
    const { used, capacity } = amounts[shownClass.value] ?? { used: 0, capacity: 0 };
    return capacity <= 0 ? 0 : used / capacity;
  });
  const total = all.at(-1)?.amounts[shownClass.value] ?? { used: 0, capacity: 0 };
  const oldest = figures.oldestWaitingAt === null ? "" : `oldest ${durationText(Date.now() - figures.oldestWaitingAt)}`;
  return (
    <section class="tiles" aria-label="Stages of requests">
      <Tile title="Waiting for a host" value={numberText(figures.waiting)} note={oldest} points={null} />
      <Tile
        title="Building or moving"
        value={numberText(figures.busy)}
        note={`${figures.counts.placed} placed`}
        points={null}
      />
      <RateTile title="Became active" count={figures.counts.active} points={rates("active")} />
      <RateTile title="Hops to an alternate" count={figures.counts.hops} points={rates("hops")} tone="warn" />
      <RateTile title="Ended in ERROR" count={figures.counts.failed} points={rates("failed")} tone="bad" />
      <Tile
        title={`${classText(held.classes[shownClass.value] ?? "")} in use`}
        value={percentText(total.used, total.capacity)}
        note={`${numberText(total.used)} of ${numberText(total.capacity)}`}
        points={shares}
      />
    </section>
  );
}

function RateTile({
  title,
  count,
  points,
  tone,
}: {
  title: string;
  count: number;
  points: readonly number[];
  tone?: string;
}) {
  return (
    <Tile
      title={title}
      value={numberText(count)}
      note={`${numberText(points.at(-1) ?? 0)} / s`}
      points={points}
      tone={tone}
    />
  );
}

interface TileProps {
  readonly title: string;
  readonly value: string;
  readonly note: string;
  readonly points: readonly number[] | null;
  readonly tone?: string | undefined;
}

function Tile({ title, value, note, points, tone = "" }: TileProps) {
  return (
    <div class={`tile ${tone}`}>
      <h2>{title}</h2>
      <p class="value">{value}</p>
      <p class="muted small">{note}&nbsp;</p>
      {points !== null && <Spark points={points} />}
    </div>
  );
}

/** The last minutes as a line; the words above it say the same. */
function Spark({ points }: { readonly points: readonly number[] }) {
  const most = Math.max(0.001, ...points);
  const line = points
    .map(
      (point, index) =>
        `${((100 * index) / Math.max(1, points.length - 1)).toFixed(1)},${(27 - (25 * point) / most).toFixed(1)}`,
    )
    .join(" ");
  return (
    <svg class="spark" viewBox="0 0 100 28" preserveAspectRatio="none" aria-hidden="true">
      {points.length > 1 && <polyline points={line} vector-effect="non-scaling-stroke" />}
    </svg>
  );
}
