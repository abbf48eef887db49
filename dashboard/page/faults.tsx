import { useMemo, useState } from "preact/hooks";
import type { LiveFaults } from "../../services/api/dashboard/live-picture.ts";
import { callApi } from "./call-api.ts";
import { byName } from "./format.ts";
import { hostNames } from "./hosts-by-cell.ts";
import { picture } from "./live-state.ts";

const FLAVOR = { id: "demo-small", name: "demo-small", vcpus: 2, ram: 2048, disk: 10 };
const CALLS_AT_ONCE = 6;

/** Breaks parts of a cloud that `berth dev` runs, and boots servers, to watch it heal. */
export function Faults() {
  const [error, setError] = useState("");
  const held = picture.value;
  const faults = held?.figures.faults ?? null;
  if (held === null || faults === null) return null;
  const run = (action: Promise<unknown>) => {
    action.then(
      () => setError(""),
      (failure: Error) => setError(failure.message),
    );
  };
  const change = (body: object) => run(callApi("PUT", "/berth/v1/faults", body));
  const conductors = held.cells.flatMap((cell) => cell.conductors.map(({ name }) => name));
  return (
    <section class="card faults" aria-labelledby="faults-title">
      <header class="card-head">
        <h2 id="faults-title">Try it</h2>
        <p class="muted small">Boot servers, break things, and watch the cloud heal. Only trial clouds have this.</p>
        <button
          type="button"
          onClick={() => run(callApi("DELETE", "/berth/v1/faults"))}
          disabled={!isAnyBroken(faults)}
        >
          Heal everything
        </button>
      </header>
      <div class="fields">
        <Load onRun={run} />
        <Builds faults={faults} onChange={change} />
        <Breaker
          label="Take a host down"
          kind="host"
          names={hostNames.value}
          broken={faults.hostsDown}
          onChange={change}
        />
        <Breaker
          label="Kill a conductor"
          kind="conductor"
          names={[...new Set([...conductors, ...faults.conductorsKilled])].sort(byName((name) => name))}
          broken={faults.conductorsKilled}
          onChange={change}
        />
        <Breaker
          label="Cut off a cell"
          kind="cell"
          names={held.cells.map(({ name }) => name)}
          broken={faults.cellsCut}
          onChange={change}
        />
      </div>
      {error !== "" && (
        <p class="bad" role="alert">
          {error}
        </p>
      )}
    </section>
  );
}

function isAnyBroken(faults: LiveFaults): boolean {
  const { failShare, buildMs, hostsDown, conductorsKilled, cellsCut } = faults;
  return failShare > 0 || buildMs > 0 || hostsDown.length + conductorsKilled.length + cellsCut.length > 0;
}

function Load({ onRun }: { readonly onRun: (action: Promise<unknown>) => void }) {
  const [count, setCount] = useState(20);
  return (
    <form
      class="group"
      onSubmit={(event) => {
        event.preventDefault();
        onRun(bootServers(count));
      }}
    >
      <label>
        Boot servers
        <input
          type="number"
          min={1}
          max={500}
          value={count}
          onInput={(event) => setCount(Math.max(1, Math.min(500, Number(event.currentTarget.value) || 1)))}
        />
      </label>
      <button type="submit" class="main">
        Boot
      </button>
    </form>
  );
}

/** Makes the flavor when it is not there yet. */
async function bootServers(count: number): Promise<void> {
  const { flavors } = await callApi<{ flavors: { id: string }[] }>("GET", "/v2.1/flavors");
  if (!flavors.some(({ id }) => id === FLAVOR.id)) await callApi("POST", "/v2.1/flavors", { flavor: FLAVOR });
  // Each server is created by a call of its own, because servers of one call use up each other's alternates where hosts are few.
  const server = { name: "demo", flavorRef: FLAVOR.id, imageRef: "", networks: "none" };
  let left = count;
  const bootNext = async (): Promise<void> => {
    for (; left > 0; ) {
      left -= 1;
      await callApi("POST", "/v2.1/servers", { server });
    }
  };
  await Promise.all(Array.from({ length: CALLS_AT_ONCE }, bootNext));
}

function Builds({ faults, onChange }: { readonly faults: LiveFaults; readonly onChange: (body: object) => void }) {
  const set = (share: number, ms: number) => onChange({ fail_share: share, build_ms: ms });
  return (
    <div class="group sliders">
      <label>
        <span>
          Builds that fail: <b>{Math.round(100 * faults.failShare)} %</b>
        </span>
        <input
          type="range"
          min={0}
          max={100}
          step={5}
          value={Math.round(100 * faults.failShare)}
          onChange={(event) => set(Number(event.currentTarget.value) / 100, faults.buildMs)}
        />
      </label>
      <label>
        <span>
          A build takes: <b>{faults.buildMs} ms</b>
        </span>
        <input
          type="range"
          min={0}
          max={5000}
          step={250}
          value={faults.buildMs}
          onChange={(event) => set(faults.failShare, Number(event.currentTarget.value))}
        />
      </label>
    </div>
  );
}

interface BreakerProps {
  readonly label: string;
  readonly kind: "host" | "conductor" | "cell";
  readonly names: readonly string[];
  readonly broken: readonly string[];
  readonly onChange: (body: object) => void;
}

function Breaker({ label, kind, names, broken, onChange }: BreakerProps) {
  const [chosen, setChosen] = useState("");
  const name = names.includes(chosen) ? chosen : (names[0] ?? "");
  const isBroken = broken.includes(name);
  // There may be 10,000 names, so the options are made again only when a name or its mark changes.
  const options = useMemo(
    () =>
      names.map((one) => (
        <option key={one} value={one}>
          {one}
          {broken.includes(one) ? " (broken)" : ""}
        </option>
      )),
    [names.join(), broken.join()],
  );
  return (
    <div class="group column">
      <div class="group">
        <label>
          {label}
          <select value={name} onChange={(event) => setChosen(event.currentTarget.value)}>
            {options}
          </select>
        </label>
        <button
          type="button"
          class={isBroken ? "main" : "danger"}
          disabled={name === ""}
          onClick={() => onChange({ [kind]: name, broken: !isBroken })}
        >
          {isBroken ? "Heal" : { host: "Take down", conductor: "Kill", cell: "Cut off" }[kind]}
          <span class="visually-hidden"> {name}</span>
        </button>
      </div>
      {broken.length > 0 && (
        <p class="small bad">
          {broken.map((one) => (
            <button
              key={one}
              type="button"
              class="chip failed"
              onClick={() => onChange({ [kind]: one, broken: false })}
            >
              {one} <small>heal</small>
            </button>
          ))}
        </p>
      )}
    </div>
  );
}
