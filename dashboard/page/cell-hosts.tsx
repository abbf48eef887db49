import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { LiveHostRow } from "../../services/api/dashboard/live-picture.ts";
import { colours } from "./colours.ts";
import { type DrawnMap, drawHosts, type MapShape, shapeOf } from "./draw-hosts.ts";
import { shownClass } from "./live-state.ts";
import { open } from "./open-panel.ts";
import { originOf, surface } from "./surface.ts";

/** The host under the pointer or under the arrow keys; `at` is where the pointer is in the window, or null for keys. */
export const pointed = signal<{
  readonly row: LiveHostRow;
  readonly cell: string;
  readonly at: { readonly x: number; readonly y: number } | null;
} | null>(null);

export interface CellHostsProps {
  readonly name: string;
  readonly isWell: boolean;
  readonly rows: readonly LiveHostRow[];
  /** The number of hosts of the largest cell that is shown. */
  readonly most: number;
  /** The height that the largest cell should have, in pixels. */
  readonly heightWanted: number;
  /** Whether no other cell is shown. */
  readonly isAlone: boolean;
}

/** The hosts of a cell as squares. They are painted onto the canvas behind the cells, and this box takes the pointer and the keys. */
export function CellHosts({ name, isWell, rows, most, heightWanted, isAlone }: CellHostsProps) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  const chosen = pointed.value?.cell === name ? rows.findIndex((row) => row[1] === pointed.value?.row[1]) : -1;
  const shape = shapeOf(rows.length, { most, width, heightWanted, isAlone });
  useEffect(() => {
    const observer = new ResizeObserver(
      ([entry]) => entry !== undefined && setWidth(Math.floor(entry.contentRect.width)),
    );
    if (box.current !== null) observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  usePainted(box, { shape, rows, chosen, isPale: !isWell });
  const point = (row: LiveHostRow | undefined, event: MouseEvent | null = null) => {
    const at = event === null ? null : { x: event.clientX, y: event.clientY };
    pointed.value = row === undefined ? null : { row, cell: name, at };
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const moves: Record<string, number> = {
      ...{ ArrowRight: 1, ArrowLeft: -1, ArrowDown: shape.columns, ArrowUp: -shape.columns },
      ...{ Home: -rows.length, End: rows.length },
    };
    const by = moves[event.key];
    const current = rows[chosen];
    if (by !== undefined) point(rows[Math.max(0, Math.min(rows.length - 1, chosen < 0 ? 0 : chosen + by))]);
    else if (event.key === "Enter" && current !== undefined) open({ kind: "host", host: current[1] });
    else return;
    event.preventDefault();
  };
  return (
    <div
      ref={box}
      class="squares"
      style={{ height: `${shape.height}px` }}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: the squares are no elements, so this box takes the keys itself, and the line below the map says in words what is chosen.
      tabIndex={0}
      role="application"
      aria-roledescription="map of hosts"
      aria-label={`Hosts of ${name}. Arrow keys choose a host, Enter opens it.`}
      onMouseMove={(event) => point(rowUnder(event, shape, rows), event)}
      onMouseLeave={() => point(undefined)}
      onFocus={() => chosen < 0 && point(rows[0])}
      onBlur={() => point(undefined)}
      onKeyDown={onKeyDown}
      onClick={(event) => {
        const row = rowUnder(event, shape, rows);
        if (row !== undefined) open({ kind: "host", host: row[1] });
      }}
    />
  );
}

function usePainted(
  box: { readonly current: HTMLDivElement | null },
  part: Pick<DrawnMap, "shape" | "rows" | "chosen" | "isPale">,
): void {
  const drawn = useRef<DrawnMap | null>(null);
  const origin = useRef({ x: 0, y: 0 });
  const under = surface.value;
  const map = { ...part, colours: colours.value, classIndex: shownClass.value, surface: under?.version ?? 0 };
  useLayoutEffect(() => {
    const paint = under?.canvas.getContext("2d");
    if (box.current === null || under == null || paint == null || map.shape.width === 0) return;
    // The boxes move only when the canvas gets another size. Asking for their place each time would cost a layout each.
    if (drawn.current?.surface !== map.surface) origin.current = originOf(box.current, under.canvas);
    const ratio = devicePixelRatio;
    paint.setTransform(ratio, 0, 0, ratio, origin.current.x * ratio, origin.current.y * ratio);
    drawHosts(paint, map, drawn.current);
    drawn.current = map;
  });
}

function rowUnder(event: MouseEvent, { columns, step }: MapShape, rows: readonly LiveHostRow[]) {
  const column = Math.floor(event.offsetX / step);
  return column >= columns ? undefined : rows[Math.floor(event.offsetY / step) * columns + column];
}
