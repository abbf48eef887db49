import { computed } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { LIVE_DISABLED, LIVE_UP, type LiveCell, type LiveHostRow } from "../../services/api/dashboard/live-picture.ts";
import { type HeldPicture, hostKeyOf, liveAmountOf } from "../../services/api/dashboard/read-live-events.ts";
import { CellHosts, pointed } from "./cell-hosts.tsx";
import { classText, countText, numberText, percentText } from "./format.ts";
import { hostKeys, rowsOf, zoomed } from "./hosts-by-cell.ts";
import { picture, shownClass } from "./live-state.ts";
import { spreadOver } from "./surface.ts";

/** From this number of cells on they are drawn small, over the whole width of the page. */
const MANY_CELLS = 17;
/** The height of the map of the largest cell, in pixels: alone, beside few others, beside many others. */
const HEIGHTS = { alone: 420, few: 170, many: 76 } as const;

export const hasManyCells = (held: HeldPicture): boolean => held.cells.length >= MANY_CELLS;

/** The part of the cells that the map shows, as text: it is the same text until something of it changes. */
const cellStates = computed(() =>
  JSON.stringify(picture.value?.cells.map(({ name, ready, answers }) => ({ name, ready, answers })) ?? []),
);
const classNames = computed(() => picture.value?.classes ?? []);

/** Every cell with its hosts as squares; one cell alone when its name was selected. */
export function HeatMap() {
  const grid = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    if (grid.current !== null && canvas.current !== null) return spreadOver(grid.current, canvas.current);
    return undefined;
  }, []);
  const keys = hostKeys.value;
  const cells = (JSON.parse(cellStates.value) as CellState[])
    .map((cell, index) => ({ cell, index, count: keys[index]?.length ?? 0 }))
    .filter(({ cell }) => zoomed.value === null || zoomed.value === cell.name);
  const most = Math.max(1, ...cells.map(({ count }) => count));
  const size = cells.length === 1 ? "alone" : cells.length < MANY_CELLS ? "few" : "many";
  return (
    <section class="card" aria-labelledby="map-title">
      <header class="card-head">
        <h2 id="map-title">Cells and hosts</h2>
        {zoomed.value !== null && (
          <button
            type="button"
            class="quiet"
            onClick={() => {
              zoomed.value = null;
            }}
          >
            All cells
          </button>
        )}
        <ClassChoice />
      </header>
      <div ref={grid} class={`cells ${size}${size === "few" && cells.length % 3 !== 0 ? " pairs" : ""}`}>
        {/* biome-ignore lint/a11y/noAriaHiddenOnFocusable: it cannot have the focus; the boxes of the cells have it. */}
        <canvas ref={canvas} aria-hidden="true" />
        {cells.map(({ cell, index }) => (
          <CellBlock
            key={cell.name}
            cell={cell}
            index={index}
            most={most}
            heightWanted={HEIGHTS[size]}
            isAlone={size === "alone"}
          />
        ))}
      </div>
      <Legend />
      <Pointed />
      <Tip />
    </section>
  );
}

/** The host that was pointed at, in words. */
function Pointed() {
  const held = picture.value;
  return (
    <p class="pointed" aria-live="polite">
      {pointed.value === null || held === null
        ? "Point at a host, or move to it with the arrow keys; Enter opens it."
        : hostText(held)}
    </p>
  );
}

function ClassChoice() {
  return (
    <label class="choice">
      <span>Shade by</span>
      <select
        value={shownClass.value}
        onChange={(event) => {
          shownClass.value = Number(event.currentTarget.value);
        }}
      >
        {classNames.value.map((name, index) => (
          <option key={name} value={index}>
            {classText(name)}
          </option>
        ))}
      </select>
    </label>
  );
}

type CellState = Pick<LiveCell, "name" | "ready" | "answers">;

interface CellBlockProps {
  readonly cell: CellState;
  readonly index: number;
  readonly most: number;
  readonly heightWanted: number;
  readonly isAlone: boolean;
}

function CellBlock({ cell: { name, ready, answers }, index, most, heightWanted, isAlone }: CellBlockProps) {
  const rows = rowsOf(index);
  let [used, capacity, down] = [0, 0, 0];
  for (const row of rows) {
    const amount = liveAmountOf(row, shownClass.value);
    used += amount.used;
    capacity += amount.capacity;
    if ((row[2] & LIVE_UP) === 0) down += 1;
  }
  const isWell = ready && answers;
  return (
    <div class={`cell ${isWell ? "" : "cut"}`}>
      <div class="cell-head">
        <button
          type="button"
          class="link"
          onClick={() => {
            zoomed.value = zoomed.value === name ? null : name;
          }}
        >
          {name}
        </button>
        <span class="muted hosts">{countText(rows.length, "host")}</span>
        {down > 0 && <b class="bad">{down} down</b>}
        <span class="push">{percentText(used, capacity)}</span>
      </div>
      <div class="bar" aria-hidden="true">
        <i style={{ width: `${capacity <= 0 ? 0 : Math.min(100, (100 * used) / capacity)}%` }} />
      </div>
      <CellHosts name={name} isWell={isWell} rows={rows} most={most} heightWanted={heightWanted} isAlone={isAlone} />
      {!isWell && <p class="bad small">{answers ? "The view of the cell loads." : "The cell does not answer."}</p>}
    </div>
  );
}

function Legend() {
  return (
    <ul class="legend" aria-label="Legend">
      <li>
        <span class="ramp" aria-hidden="true">
          {[0, 1, 2, 3, 4, 5].map((step) => (
            <i key={step} class={`heat-${step}`} />
          ))}
        </span>
        free to full
      </li>
      <li>
        <i class="mark down" aria-hidden="true">
          ×
        </i>
        down
      </li>
      <li>
        <i class="mark disabled" aria-hidden="true" />
        disabled
      </li>
      <li>
        <i class="mark dot failing" aria-hidden="true" />
        failed builds lately
      </li>
      <li>
        <i class="mark dot busy" aria-hidden="true" />
        building or moving
      </li>
    </ul>
  );
}

/** The row as it is now: the pointer may rest on a host that changes. */
function rowNow(held: HeldPicture): LiveHostRow {
  const { row } = pointed.value!;
  return held.hosts.get(hostKeyOf(row[0], row[1])) ?? row;
}

const stateText = (state: number): string =>
  `${(state & LIVE_UP) === 0 ? "down" : "up"}${(state & LIVE_DISABLED) === 0 ? "" : ", disabled"}`;

function hostText(held: HeldPicture): string {
  const row = rowNow(held);
  const [, name, state, servers, busy, failures] = row;
  const amounts = held.classes.map((one, index) => {
    const { used, capacity } = liveAmountOf(row, index);
    return `${classText(one)} ${numberText(used)} of ${numberText(capacity)}`;
  });
  return [
    `${name} in ${pointed.value!.cell}: ${stateText(state)}`,
    `${countText(servers, "server")}${busy > 0 ? `, ${busy} in motion` : ""}`,
    ...amounts,
    ...(failures > 0 ? [`failed builds ${numberText(failures)}`] : []),
  ].join(" · ");
}

/** The same beside the pointer. The line below the map has it for screen readers. */
function Tip() {
  const at = pointed.value?.at ?? null;
  const held = picture.value;
  if (at === null || held === null) return null;
  const row = rowNow(held);
  const [, name, state, servers, busy, failures] = row;
  const isLeft = at.x > innerWidth / 2;
  const side = isLeft ? { right: `${innerWidth - at.x + 14}px` } : { left: `${at.x + 14}px` };
  return (
    <div class="tip" aria-hidden="true" style={{ ...side, top: `${Math.min(at.y + 14, innerHeight - 150)}px` }}>
      <p>
        <b>{name}</b> <span class={(state & LIVE_UP) === 0 ? "bad" : "muted"}>{stateText(state)}</span>
      </p>
      {held.classes.map((one, index) => {
        const { used, capacity } = liveAmountOf(row, index);
        if (capacity <= 0) return null;
        return (
          <p key={one} class="tip-row">
            <span class="muted">{classText(one)}</span>
            <span class="bar">
              <i style={{ width: `${Math.min(100, (100 * used) / capacity)}%` }} />
            </span>
            <span>
              {numberText(used)} of {numberText(capacity)}
            </span>
          </p>
        );
      })}
      <p class="muted">
        {countText(servers, "server")}
        {busy > 0 && `, ${busy} in motion`}
        {failures > 0.05 && <span class="bad"> · {numberText(failures)} failed builds lately</span>}
      </p>
    </div>
  );
}
