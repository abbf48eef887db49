import type { KeptMiss, KeptStep, KeptWeight } from "../../core/scheduling/explain/decision.ts";
import { numberText } from "./format.ts";
import { open } from "./open-panel.ts";

/** How many hosts each step left, with what it removed and why. */
export function Funnel({ hosts, steps }: { readonly hosts: number; readonly steps: readonly KeptStep[] }) {
  const rows = [{ step: "all hosts", left: hosts, removed: [] as KeptStep["removed"] }, ...steps];
  const shareOf = (count: number) => (hosts === 0 ? 0 : (100 * count) / hosts);
  return (
    <ol class="funnel">
      {rows.map(({ step, left, removed }) => (
        <li key={step}>
          <span class="step">{step}</span>
          <span class="left">{numberText(left)}</span>
          <span class="bar" aria-hidden="true">
            <i style={{ width: `${shareOf(left)}%` }} />
            <i class="lost" style={{ width: `${shareOf(removed.reduce((sum, one) => sum + one.hosts, 0))}%` }} />
          </span>
          {removed.length > 0 && (
            <ul class="removed">
              {removed.map(({ why, hosts: count }) => (
                <li key={why}>
                  −{numberText(count)} {why}
                </li>
              ))}
            </ul>
          )}
        </li>
      ))}
    </ol>
  );
}

export function Misses({ misses }: { readonly misses: readonly KeptMiss[] }) {
  if (misses.length === 0) return null;
  return (
    <>
      <h3>Nearest misses</h3>
      <ul class="plain">
        {misses.map(({ host, cell, why, lacks }) => (
          <li key={`${cell}/${host}`}>
            <HostLink host={host} /> <span class="muted">{cell}</span> {why}
            {lacks.map(({ class: name, requested, free }) => (
              <span key={name} class="muted">
                {" "}
                · {name}: {numberText(requested)} asked for, {numberText(free)} free
              </span>
            ))}
          </li>
        ))}
      </ul>
    </>
  );
}

/** The best hosts with what each weigher added. */
export function Weights({ ranked }: { readonly ranked: readonly KeptWeight[] }) {
  if (ranked.length === 0) return null;
  const weighers = Object.keys(ranked[0]?.parts ?? {}).filter((name) =>
    ranked.some(({ parts }) => Math.abs((parts[name]?.[1] ?? 0) * (parts[name]?.[2] ?? 0)) > 0.0005),
  );
  return (
    <div class="wide">
      <table>
        <thead>
          <tr>
            <th scope="col">Host</th>
            <th scope="col">Weight</th>
            {weighers.map((name) => (
              <th scope="col" key={name}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {ranked.map(({ host, weight, parts }) => (
            <tr key={host}>
              <th scope="row">
                <HostLink host={host} />
              </th>
              <td>{weight.toFixed(2)}</td>
              {weighers.map((name) => {
                const [, normalised = 0, multiplier = 0] = parts[name] ?? [];
                return <td key={name}>{(normalised * multiplier).toFixed(2)}</td>;
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function HostLink({ host }: { readonly host: string }) {
  return (
    <button type="button" class="link" onClick={() => open({ kind: "host", host })}>
      {host}
    </button>
  );
}
