import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { LIVE_DISABLED, LIVE_UP, type LiveHostRow } from "../../services/api/dashboard/live-picture.ts";
import { type HeldPicture, liveAmountOf } from "../../services/api/dashboard/read-live-events.ts";
import { byName, classText, numberText, percentText } from "./format.ts";
import { picture } from "./live-state.ts";
import { open } from "./open-panel.ts";

/** The place of the shown class in `classes`. */
export const shownClass = signal(0);
/** The cell that is shown alone, or null. */
const zoomed = signal<string | null>(null);
const pointed = signal<{ readonly row: LiveHostRow; readonly cell: string } | null>(null);

const GAP = 2;
const SIDE_MIN = 4;
const SIDE_MAX = 30;

export function HeatMap() {
  const held = picture.value;
  if (held === null) return null;
  const byCell = Map.groupBy(held.hosts.values(), (row) => row[0]);
  const cells = held.cells
    .map((cell, index) => ({ cell, rows: (byCell.get(index) ?? []).toSorted(byName((row) => row[1])) }))
    .filter(({ cell }) => zoomed.value === null || zoomed.value === cell.name);
  const most = Math.max(1, ...cells.map(({ rows }) => rows.length));
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
        <ClassChoice held={held} />
      </header>
      <div class={`cells ${cells.length === 1 ? "one" : ""}`}>
        {cells.map(({ cell, rows }) => (
          <CellBlock
            key={cell.name}
            name={cell.name}
            isWell={cell.ready && cell.answers}
            rows={rows}
            most={most}
            held={held}
          />
        ))}
      </div>
      <Legend />
      <p class="pointed" aria-live="polite">
        {pointed.value === null
          ? "Point at a host, or move to it with the arrow keys; Enter opens it."
          : hostText(held)}
      </p>
    </section>
  );
}

function ClassChoice({ held }: { readonly held: HeldPicture }) {
  return (
    <label class="choice">
      <span>Shade by</span>
      <select
        value={shownClass.value}
        onChange={(event) => {
          shownClass.value = Number(event.currentTarget.value);
        }}
      >
        {held.classes.map((name, index) => (
          <option key={name} value={index}>
            {classText(name)}
          </option>
        ))}
      </select>
    </label>
  );
}

interface CellBlockProps {
  readonly name: string;
  readonly isWell: boolean;
  readonly rows: readonly LiveHostRow[];
  /** The number of hosts of the largest cell that is shown. */
  readonly most: number;
  readonly held: HeldPicture;
}

function CellBlock({ name, isWell, rows, most, held }: CellBlockProps) {
  const sums = rows.map((row) => liveAmountOf(row, shownClass.value));
  const used = sums.reduce((sum, one) => sum + one.used, 0);
  const capacity = sums.reduce((sum, one) => sum + one.capacity, 0);
  const down = rows.filter((row) => (row[2] & LIVE_UP) === 0).length;
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
        <span class="muted">
          {rows.length} hosts{down > 0 && <b class="bad"> · {down} down</b>}
        </span>
        <span class="push">{percentText(used, capacity)}</span>
      </div>
      <div class="bar" aria-hidden="true">
        <i style={{ width: `${capacity <= 0 ? 0 : Math.min(100, (100 * used) / capacity)}%` }} />
      </div>
      <CellCanvas name={name} rows={rows} most={most} held={held} />
      {!isWell && <p class="bad small">The cell does not answer.</p>}
    </div>
  );
}

function CellCanvas({ name, rows, most, held }: Omit<CellBlockProps, "isWell">) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const shape = useRef({ columns: 1, step: 1 });
  const chosen = pointed.value?.cell === name ? rows.findIndex((row) => row[1] === pointed.value?.row[1]) : -1;
  const cells = zoomed.value === null ? held.cells.length : 1;
  useEffect(() => {
    const draw = () => {
      if (canvas.current !== null) shape.current = drawHosts(canvas.current, rows, { most, cells, chosen });
    };
    draw();
    const observer = new ResizeObserver(draw);
    if (canvas.current?.parentElement) observer.observe(canvas.current.parentElement);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    scheme.addEventListener("change", draw);
    return () => {
      observer.disconnect();
      scheme.removeEventListener("change", draw);
    };
  });
  const rowAt = (event: MouseEvent): LiveHostRow | undefined => {
    const { columns, step } = shape.current;
    const column = Math.floor(event.offsetX / step);
    return column >= columns ? undefined : rows[Math.floor(event.offsetY / step) * columns + column];
  };
  const point = (row: LiveHostRow | undefined) => {
    pointed.value = row === undefined ? null : { row, cell: name };
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const { columns } = shape.current;
    const moves: Record<string, number> = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns };
    const by = moves[event.key];
    const current = rows[chosen];
    if (by !== undefined) point(rows[Math.max(0, Math.min(rows.length - 1, chosen < 0 ? 0 : chosen + by))]);
    else if (event.key === "Enter" && current !== undefined) open({ kind: "host", host: current[1] });
    else return;
    event.preventDefault();
  };
  return (
    <div class="canvas-box">
      {/* biome-ignore lint/a11y/noInteractiveElementToNoninteractiveRole: a canvas has no elements for hosts, so it takes the keys itself, and the line below the map says in words what is chosen. */}
      <canvas
        ref={canvas}
        tabIndex={0}
        role="application"
        aria-roledescription="map of hosts"
        aria-label={`Hosts of ${name}. Arrow keys choose a host, Enter opens it.`}
        onMouseMove={(event) => point(rowAt(event))}
        onMouseLeave={() => point(undefined)}
        onFocus={() => chosen < 0 && point(rows[0])}
        onBlur={() => point(undefined)}
        onKeyDown={onKeyDown}
        onClick={(event) => {
          const row = rowAt(event);
          if (row !== undefined) open({ kind: "host", host: row[1] });
        }}
      />
    </div>
  );
}

interface Drawing {
  readonly most: number;
  readonly cells: number;
  readonly chosen: number;
}

/** Draws the hosts as squares, and returns where they are. */
function drawHosts(canvas: HTMLCanvasElement, rows: readonly LiveHostRow[], { most, cells, chosen }: Drawing) {
  const width = canvas.parentElement?.clientWidth ?? 200;
  // Many cells share the page, so their squares are smaller.
  const height = cells > 12 ? 90 : cells === 1 ? 420 : 170;
  const fitting = Math.floor(Math.sqrt((width * height) / most));
  const step = Math.max(SIDE_MIN, Math.min(SIDE_MAX, fitting)) + GAP;
  const columns = Math.max(1, Math.floor((width + GAP) / step));
  const tall = Math.max(1, Math.ceil(rows.length / columns)) * step;
  const ratio = devicePixelRatio;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(tall * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${tall}px`;
  const paint = canvas.getContext("2d");
  if (paint === null) return { columns, step };
  const colours = coloursOf(canvas);
  paint.scale(ratio, ratio);
  for (const [index, row] of rows.entries()) {
    const [x, y] = [(index % columns) * step, Math.floor(index / columns) * step];
    drawHost(paint, row, { x, y, side: step - GAP }, colours);
    if (index === chosen) {
      paint.strokeStyle = colours.text;
      paint.lineWidth = 2;
      paint.strokeRect(x - 1, y - 1, step, step);
    }
  }
  return { columns, step };
}

type Colours = ReturnType<typeof coloursOf>;

function coloursOf(element: HTMLElement) {
  const style = getComputedStyle(element);
  const of = (name: string) => style.getPropertyValue(name).trim();
  const ramp = [0, 1, 2, 3, 4, 5].map((step) => of(`--heat-${step}`));
  return { ramp, down: of("--down"), bad: of("--bad"), warn: of("--warn"), text: of("--text"), busy: of("--busy") };
}

function drawHost(
  paint: CanvasRenderingContext2D,
  row: LiveHostRow,
  { x, y, side }: { readonly x: number; readonly y: number; readonly side: number },
  colours: Colours,
): void {
  const { used, capacity } = liveAmountOf(row, shownClass.value);
  const [, , state, , busy, failures] = row;
  const share = capacity <= 0 ? 0 : Math.min(1, used / capacity);
  const isUp = (state & LIVE_UP) !== 0;
  const step = share === 0 ? 0 : 1 + Math.min(4, Math.floor(share * 5));
  paint.fillStyle = isUp ? (colours.ramp[step] ?? "") : colours.down;
  paint.fillRect(x, y, side, side);
  if (!isUp || (state & LIVE_DISABLED) !== 0) {
    paint.strokeStyle = isUp ? colours.warn : colours.bad;
    paint.lineWidth = side > 10 ? 2 : 1;
    paint.beginPath();
    if (isUp) paint.rect(x + 1, y + 1, side - 2, side - 2);
    else {
      paint.moveTo(x + 2, y + 2);
      paint.lineTo(x + side - 2, y + side - 2);
      paint.moveTo(x + side - 2, y + 2);
      paint.lineTo(x + 2, y + side - 2);
    }
    paint.stroke();
  }
  if (failures > 0.05) dot(paint, x + side - side / 4, y + side / 4, side / 6, colours.bad);
  if (busy > 0) dot(paint, x + side / 4, y + side - side / 4, side / 6, colours.busy);
}

function dot(paint: CanvasRenderingContext2D, x: number, y: number, radius: number, colour: string): void {
  paint.fillStyle = colour;
  paint.beginPath();
  paint.arc(x, y, Math.max(1, radius), 0, 2 * Math.PI);
  paint.fill();
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

function hostText(held: HeldPicture): string {
  const { row, cell } = pointed.value!;
  const now = held.hosts.get(`${row[0]}/${row[1]}`) ?? row;
  const [, name, state, servers, busy, failures] = now;
  const amounts = held.classes.map((one, index) => {
    const { used, capacity } = liveAmountOf(now, index);
    return `${classText(one)} ${numberText(used)} of ${numberText(capacity)}`;
  });
  return [
    `${name} in ${cell}: ${(state & LIVE_UP) === 0 ? "down" : "up"}${(state & LIVE_DISABLED) === 0 ? "" : ", disabled"}`,
    `${servers} servers${busy > 0 ? `, ${busy} in motion` : ""}`,
    ...amounts,
    ...(failures > 0 ? [`failed builds ${numberText(failures)}`] : []),
  ].join(" · ");
}
