import type { FoldedStacks } from "./cpu-profile.ts";

const WIDTH = 1_600;
const ROW = 17;
/** Frames that would be narrower are left out. */
const PIXELS_MIN = 0.6;
const CHAR_PIXELS = 6.6;

interface Frame {
  readonly name: string;
  ms: number;
  readonly children: Map<string, Frame>;
}

/** Draws the stacks as one SVG that needs nothing beside it: hovering over a frame shows its time, and a click shows the frame at full width. */
export function flameGraph(title: string, stacks: FoldedStacks, units: number): string {
  const root = treeOf(stacks);
  const rects: string[] = [];
  const depth = draw(root, { x: 0, depth: 0, scale: WIDTH / root.ms, total: root.ms, units }, rects);
  const height = (depth + 2) * ROW + 10;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="monospace" font-size="11">
<style>g:hover rect{stroke:#000}rect{stroke:#fff;stroke-width:.5}text{pointer-events:none}</style>
<text x="4" y="13">${escaped(title)}</text>
<g id="frames">
${rects.join("\n")}
</g>
<script><![CDATA[
const frames = [...document.querySelectorAll("#frames g")].map((g) => ({ g, x: +g.dataset.x, w: +g.dataset.w, d: +g.dataset.d }));
const show = (at) => frames.forEach(({ g, x, w, d }) => {
  const above = d < at.d && x <= at.x + 1e-6 && x + w >= at.x + at.w - 1e-6;
  const inside = d >= at.d && x >= at.x - 1e-6 && x + w <= at.x + at.w + 1e-6;
  g.style.display = above || inside ? "" : "none";
  const left = above ? 0 : ((x - at.x) * ${WIDTH}) / at.w, width = above ? ${WIDTH} : (w * ${WIDTH}) / at.w;
  const [rect, text] = [g.querySelector("rect"), g.querySelector("text")];
  rect.setAttribute("x", left); rect.setAttribute("width", width); text.setAttribute("x", left + 2);
  text.textContent = g.dataset.n.slice(0, Math.max(0, Math.floor(width / ${CHAR_PIXELS}) - 1));
});
for (const frame of frames) frame.g.addEventListener("click", () => show(frame));
if (frames.length > 0) show(frames[0]);
]]></script>
</svg>
`;
}

function treeOf(stacks: FoldedStacks): Frame {
  const root: Frame = { name: "all processes", ms: 0, children: new Map() };
  for (const [stack, ms] of stacks) {
    let at = root;
    at.ms += ms;
    for (const name of stack.split(";")) {
      const child = at.children.get(name) ?? { name, ms: 0, children: new Map() };
      at.children.set(name, child);
      child.ms += ms;
      at = child;
    }
  }
  return root;
}

interface Place {
  readonly x: number;
  readonly depth: number;
  readonly scale: number;
  readonly total: number;
  readonly units: number;
}

/** Appends the frame and those above it, and returns the greatest depth. */
function draw(frame: Frame, place: Place, rects: string[]): number {
  const { x, depth, scale, total, units } = place;
  const width = frame.ms * scale;
  if (width < PIXELS_MIN) return depth;
  const y = (depth + 1) * ROW;
  const share = ((100 * frame.ms) / total).toFixed(1);
  const hue = 20 + ([...frame.name].reduce((sum, char) => sum + char.charCodeAt(0), 0) % 40);
  const name = escaped(frame.name);
  rects.push(
    `<g data-x="${x.toFixed(3)}" data-w="${width.toFixed(3)}" data-d="${depth}" data-n="${name}">` +
      `<title>${name}: ${(frame.ms / units).toFixed(4)} ms each, ${share} %</title>` +
      `<rect x="${x.toFixed(2)}" y="${y}" width="${width.toFixed(2)}" height="${ROW - 1}" fill="hsl(${hue},80%,70%)"/>` +
      `<text x="${(x + 2).toFixed(2)}" y="${y + 12}"></text></g>`,
  );
  let [left, deepest] = [x, depth];
  for (const child of [...frame.children.values()].sort((a, b) => b.ms - a.ms)) {
    deepest = Math.max(deepest, draw(child, { ...place, x: left, depth: depth + 1 }, rects));
    left += child.ms * scale;
  }
  return deepest;
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
