import { render } from "preact";
import { useState } from "preact/hooks";
import { setToken } from "./call-api.ts";
import { CapacityChart } from "./capacity-chart.tsx";
import { Control, Lamps } from "./control.tsx";
import { Faults } from "./faults.tsx";
import { HeatMap, hasManyCells } from "./heat-map.tsx";
import { connection, followApi, picture, refusal, takeSample, ticked } from "./live-state.ts";
import { Paths } from "./paths.tsx";
import { SidePanel } from "./side-panel.tsx";
import { Summary } from "./summary.tsx";
import { WhatIf } from "./what-if.tsx";

const STATES = {
  connecting: "connecting",
  live: "live",
  lost: "connection lost, trying again",
  refused: "not admitted",
} as const;

function App() {
  const held = picture.value;
  return (
    <>
      <header class="top">
        <h1>Berth</h1>
        <p class={`state ${connection.value}`} role="status">
          <i aria-hidden="true" />
          {STATES[connection.value]}
        </p>
        <Lamps />
      </header>
      <main>
        {connection.value === "refused" ? (
          <Admission />
        ) : held === null ? (
          <p class="empty">Waiting for the first picture of the cloud…</p>
        ) : (
          <>
            <Summary />
            <Faults />
            {hasManyCells(held) && <HeatMap />}
            <div class="columns">
              <div class="stack">
                {!hasManyCells(held) && <HeatMap />}
                <CapacityChart />
              </div>
              <div class="stack">
                <Paths />
                <Control />
              </div>
            </div>
            <WhatIf />
          </>
        )}
      </main>
      <SidePanel />
    </>
  );
}

/** Asks for a token. It is kept as long as the tab is open. */
function Admission() {
  const [text, setText] = useState("");
  return (
    <form
      class="card admission"
      onSubmit={(event) => {
        event.preventDefault();
        setToken(text.trim());
        connection.value = "connecting";
        void followApi();
      }}
    >
      <h2>An admin's token is needed</h2>
      {refusal.value !== "" && <p class="bad">{refusal.value}</p>}
      <label>
        Token
        <input
          type="password"
          autocomplete="off"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </label>
      <button type="submit" class="main">
        Show the cloud
      </button>
    </form>
  );
}

const root = document.getElementById("app");
if (root !== null) render(<App />, root);
setInterval(takeSample, 1_000);
setInterval(() => {
  ticked.value = Date.now();
}, 500);
void followApi();
