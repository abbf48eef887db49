/** The page's own style: nothing is fetched. The page is light or dark as the reader's system is set, and light on paper. */
export const REPORT_STYLE = `
:root {
  color-scheme: light dark;
  --page: #f7f7f5; --card: #ffffff; --ink: #1d2127; --soft: #676e79; --line: #e2e3e6; --code: #eff0f2;
  --ok: #1f8a70; --active: #1f8a70; --building: #5b8def; --refused: #d9952b; --unknown: #8b5fc7; --error: #cf3f3f;
  --spread: #a9c3f3; --median: #2f5fc4; --slowest: #8b93a3; --fault: #c2410c; --fault-soft: rgba(234, 88, 12, 0.13);
  --good: #12704f; --good-soft: #dcf3e9; --bad: #b02a2a; --bad-soft: #fbe3e2; --dim-soft: #ececef;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --page: #14161a; --card: #1c1f25; --ink: #e8eaee; --soft: #9aa2af; --line: #31353d; --code: #272b32;
    --ok: #35b28f; --active: #35b28f; --building: #6f9df5; --refused: #e2a544; --unknown: #a986dd; --error: #ea6a66;
    --spread: #35558f; --median: #8db2ff; --slowest: #7d8594; --fault: #fb923c; --fault-soft: rgba(251, 146, 60, 0.15);
    --good: #63d6ad; --good-soft: #17382e; --bad: #ff9a94; --bad-soft: #451f20; --dim-soft: #2a2e35;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 14px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif; }
main { max-width: 1200px; margin: 0 auto; padding: 28px 20px 60px; }
header { display: flex; flex-wrap: wrap; align-items: baseline; gap: 4px 14px; margin-bottom: 18px; }
h1 { font-size: 25px; line-height: 1.2; margin: 0; letter-spacing: -0.01em; overflow-wrap: anywhere; }
h2 { font-size: 16px; margin: 0 0 10px; }
h3 { font-size: 14px; margin: 18px 0 6px; }
p { margin: 0 0 8px; }
.soft, .note { color: var(--soft); }
.note { font-size: 12.5px; max-width: 88ch; }
header .soft { flex-basis: 100%; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 16px 18px; margin-bottom: 16px; }
code { font: 12.5px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; background: var(--code); border-radius: 4px; padding: 1px 4px; overflow-wrap: anywhere; }
.badge { font-size: 12.5px; font-weight: 650; border-radius: 99px; padding: 2px 11px; white-space: nowrap; background: var(--dim-soft); }
.good { color: var(--good); background: var(--good-soft); }
.bad { color: var(--bad); background: var(--bad-soft); }
.failures { border-color: var(--bad); }
.failures ul { margin: 0; padding-left: 20px; overflow-wrap: anywhere; }
.tiles { display: grid; grid-template-columns: repeat(5, 1fr); gap: 10px; margin-bottom: 16px; }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 10px 14px; }
.tile b { display: block; font-size: 21px; line-height: 1.25; font-weight: 620; font-variant-numeric: tabular-nums; white-space: nowrap; }
.tile.alarm b { color: var(--bad); }
.tile span { color: var(--soft); font-size: 12.5px; display: block; line-height: 1.3; }
.wide { overflow-x: auto; }
svg { display: block; width: 100%; min-width: 720px; height: auto; }
svg text { font-size: 11px; fill: var(--ink); }
svg .title { font-size: 12px; font-weight: 600; }
svg .tick { fill: var(--soft); font-size: 10.5px; }
svg .grid line { stroke: var(--line); stroke-width: 1; }
svg .ok { fill: var(--ok); } svg .active { fill: var(--active); } svg .building { fill: var(--building); }
svg .refused { fill: var(--refused); } svg .unknown { fill: var(--unknown); } svg .error { fill: var(--error); }
svg .spread { fill: var(--spread); } svg .median { fill: var(--median); } svg .slowest { fill: var(--slowest); }
svg .band { fill: var(--fault); }
svg .fault { fill: var(--fault); fill-opacity: 0.34; stroke: var(--fault); stroke-width: 1; }
svg .fault-label { font-size: 11px; }
svg .moment { stroke: var(--soft); stroke-width: 1.2; stroke-dasharray: 4 3; }
svg .moment-label { fill: var(--soft); font-size: 10.5px; }
table { border-collapse: collapse; width: 100%; font-size: 13px; }
th, td { text-align: left; padding: 5px 10px 5px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
thead th { color: var(--soft); font-weight: 550; font-size: 12px; vertical-align: bottom; }
tbody tr:last-child > * { border-bottom: 0; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; padding-left: 8px; }
.group { text-align: center; border-bottom-color: transparent; }
.first > * { border-top: 2px solid var(--line); }
.during > * { background: var(--fault-soft); }
.reasons td:first-child { width: 72px; padding-right: 14px; }
.reason { overflow-wrap: anywhere; }
.bar { width: 28%; min-width: 110px; padding-top: 9px; padding-right: 16px; }
.bar i { display: block; height: 10px; border-radius: 3px; background: var(--refused); min-width: 3px; }
.bar i.errors { background: var(--error); }
.bar i.tries { background: var(--active); }
details { margin-top: 8px; }
summary { cursor: pointer; color: var(--soft); }
.law td:first-child { white-space: nowrap; width: 1%; padding-right: 16px; }
.law ul { margin: 2px 0; padding-left: 18px; overflow-wrap: anywhere; }
footer { color: var(--soft); font-size: 12.5px; }
@media print { section, .tile { break-inside: avoid; } body { background: #fff; } }
@media (max-width: 900px) { .tiles { grid-template-columns: repeat(auto-fill, minmax(136px, 1fr)); } }
@media (max-width: 640px) { main { padding: 18px 12px 40px; } section { padding: 14px 12px; } }
`;
