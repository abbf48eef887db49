import { LIVE_DISABLED, LIVE_UP, type LiveHostRow } from "../../services/api/dashboard/live-picture.ts";
import { liveAmountOf } from "../../services/api/dashboard/read-live-events.ts";

const GAP = 2;
const SIDE_MIN = 4;
/** The largest squares: of a cell that is shown beside others, and of one that is shown alone. */
const SIDE_MAX = 30;
const SIDE_MAX_ALONE = 52;

/** Where the squares of a canvas are. */
export interface MapShape {
  readonly columns: number;
  /** The width and height of a square with its gap, which need not be whole pixels. */
  readonly step: number;
  readonly width: number;
  readonly height: number;
}

export interface MapColours {
  readonly ramp: readonly string[];
  readonly down: string;
  readonly bad: string;
  readonly warn: string;
  readonly text: string;
  readonly busy: string;
  readonly card: string;
}

/** Fits `count` squares into the width. All cells get squares of the size that suits the largest one, which has `most` hosts. */
export function shapeOf(
  count: number,
  room: { readonly most: number; readonly width: number; readonly heightWanted: number; readonly isAlone: boolean },
): MapShape {
  const { most, width, heightWanted } = room;
  const sideMax = room.isAlone ? SIDE_MAX_ALONE : SIDE_MAX;
  const fitting = Math.floor(Math.sqrt((width * heightWanted) / Math.max(1, most)));
  const side = Math.max(SIDE_MIN, Math.min(sideMax, fitting)) + GAP;
  const columns = Math.max(1, Math.floor((width + GAP) / side));
  // The squares are stretched to fill the width, unless they are at their largest.
  const step = side === sideMax + GAP ? side : (width + GAP) / columns;
  return { columns, step, width, height: Math.max(1, Math.ceil(Math.max(1, count) / columns) * step - GAP) };
}

/** What the canvas shows of a cell now, so that only the squares that differ are painted again. */
export interface DrawnMap {
  /** Rises whenever the canvas has become empty. */
  readonly surface: number;
  readonly shape: MapShape;
  readonly colours: MapColours;
  readonly classIndex: number;
  readonly rows: readonly LiveHostRow[];
  readonly chosen: number;
  /** A cell that does not answer is drawn pale: its squares are old. */
  readonly isPale: boolean;
}

/** Paints a cell, with its first square at the origin of `paint`. `before` is what is painted there, or null for nothing. */
export function drawHosts(paint: CanvasRenderingContext2D, map: DrawnMap, before: DrawnMap | null): void {
  const { shape, colours, rows, chosen } = map;
  const isSame = before !== null && hasSameLook(map, before);
  const wasChosen = isSame ? before.chosen : -1;
  // The frame of a chosen host lies in the gaps around it, so the gaps are cleared with it.
  if (wasChosen !== chosen && wasChosen >= 0) clear(paint, squareOf(shape, wasChosen), colours);
  for (const [index, row] of rows.entries()) {
    if (isSame && before.rows[index] === row && index !== wasChosen && index !== chosen) continue;
    const square = squareOf(shape, index);
    if (map.isPale) clear(paint, square, colours);
    paint.globalAlpha = map.isPale ? 0.5 : 1;
    drawHost(paint, row, square, colours, map.classIndex);
    paint.globalAlpha = 1;
  }
  const count = before !== null && before.surface === map.surface ? before.rows.length : 0;
  for (let index = rows.length; index < count; index += 1) clear(paint, squareOf(shape, index), colours);
  if (chosen >= 0) {
    const { x, y, side } = squareOf(shape, chosen);
    paint.strokeStyle = colours.text;
    paint.lineWidth = 2;
    paint.strokeRect(x - 1, y - 1, side + 2, side + 2);
  }
}

function hasSameLook(map: DrawnMap, before: DrawnMap): boolean {
  return (
    before.surface === map.surface &&
    before.shape.width === map.shape.width &&
    before.shape.step === map.shape.step &&
    before.colours === map.colours &&
    before.classIndex === map.classIndex &&
    before.isPale === map.isPale
  );
}

interface Square {
  readonly x: number;
  readonly y: number;
  readonly side: number;
}

/** Squares begin at whole pixels, so that their edges are sharp. */
function squareOf({ columns, step }: MapShape, index: number): Square {
  const [x, y] = [Math.round((index % columns) * step), Math.round(Math.floor(index / columns) * step)];
  return { x, y, side: Math.floor(step) - GAP };
}

function clear(paint: CanvasRenderingContext2D, { x, y, side }: Square, colours: MapColours): void {
  paint.fillStyle = colours.card;
  paint.fillRect(x - GAP, y - GAP, side + 2 * GAP, side + 2 * GAP);
}

function drawHost(
  paint: CanvasRenderingContext2D,
  row: LiveHostRow,
  { x, y, side }: Square,
  colours: MapColours,
  classIndex: number,
): void {
  const { used, capacity } = liveAmountOf(row, classIndex);
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
