import { describe, expect, it } from "vitest";
import type { ShownLife, ShownTask } from "./life-answer.ts";
import { eventsOf } from "./life-events.ts";
import { lifeText } from "./print-life.ts";

const at = (second: number): string => `2026-01-01T00:00:${String(second).padStart(2, "0")}.000Z`;
const ASKED = { request_id: "req-1", user_id: "eve", project_id: "p" };
const CLAIM = [
  { provider: "a", class: "VCPU", amount: 1 },
  { provider: "b", class: "VCPU", amount: 1 },
];
const BUILD: ShownTask = {
  ...{ id: "t1", kind: "build", asked_by: ASKED, at: at(1), ended_at: at(9), outcome: "success" },
  ...{ stage: null, reason: "", move: null, stages: [], conductors: [{ at: at(2), id: "c", name: "conductor-1" }] },
  attempts: [
    {
      ...{ host: "h1", at: at(1), ended_at: at(5), result: "failed", reason: "disk\n  full" },
      ...{ conductors: ["conductor-1"], claim: CLAIM },
    },
    { host: "h2", at: at(5), ended_at: at(9), result: "success", reason: null, conductors: ["conductor-1"], claim: [] },
  ],
  hops: [{ at: at(5), from: "h1", to: "h2", reason: "disk full", gave_back: CLAIM, claimed: [] }],
};
const LIFE: ShownLife = {
  ...{ server: "s", name: "web", cell: "north", deletion: null, decisions: [], tasks: [BUILD], requested_moves: [] },
  state: { status: "ACTIVE", task_state: null, host: "h2", fault: null, launched_at: at(9), deleted_at: null },
  request: { state: "dispatched", asked_by: ASKED, at: at(0), updated_at: at(1), fault: null },
  ...{ hosts: [], waits: [], missing: [], dashboard: null },
};
/** Lines of the time line without their times. */
const told = (life: ShownLife): string[] =>
  lifeText(life)
    .split("\n")
    .filter((line) => line.startsWith("2026"))
    .map((line) => line.slice(24).trim().replace(/ {2,}/, ": "));

describe("the life of a server in the form that people read", () => {
  it("is a time line in which an attempt ends before the hop, and the hop comes before the next attempt", () => {
    expect(lifeText(LIFE)).toContain("server s (web)\nACTIVE, on h2 in cell north\n");
    expect(told(LIFE)).toEqual([
      "create: asked for by user eve of project p, request req-1",
      "build: tries h1",
      "build: taken by conductor conductor-1",
      "build: fails on h1, carried by conductor-1: disk full",
      "build: hops from h1 to h2: gives back 2 VCPU, claims nothing",
      "build: tries h2",
      "build: succeeds on h2, carried by conductor-1",
      "build: ends: success",
    ]);
  });

  it("shows the decision before the first attempt, although it was written down later, and a later one at its own time", () => {
    const decision = { outcome: "placed", host: "h1", cell: "north", feasible: 2, alternates: ["h2"] };
    const decisions = [
      { request_id: "req-2", at: at(8), scheduler: "s2", server: "s", decision },
      { request_id: "req-1", at: at(4), scheduler: "s1", server: "s", decision },
    ] as unknown as ShownLife["decisions"];
    const lines = eventsOf({ ...LIFE, decisions }).map((event) => `${event.at.slice(17, 19)} ${event.what}`);
    expect(lines.slice(0, 3)).toEqual(["00 create", "01 schedule", "01 build"]);
    expect(lines).toContain("08 schedule");
  });

  it("ends with the address of the dashboard, where there is one", () => {
    expect(lifeText(LIFE)).not.toContain("browser");
    const text = lifeText({ ...LIFE, dashboard: "http://api/dashboard#server/s" });
    expect(text.endsWith("In a browser: http://api/dashboard#server/s\n")).toBe(true);
  });

  it("says below the fault what an operator can do, unless the api names nothing", () => {
    const fault = { at: at(9), message: "No valid host: h1: no power", next_step: "Mend h1." };
    const text = lifeText({ ...LIFE, state: { ...LIFE.state!, status: "ERROR", host: null, fault } });
    expect(text).toContain(`fault at ${at(9)}: No valid host: h1: no power\nwhat to do: Mend h1.\n`);
    const without = { ...LIFE.state!, fault: { ...fault, next_step: null } };
    expect(lifeText({ ...LIFE, state: without })).not.toContain("what to do");
  });

  it("contains nothing that a terminal would obey", () => {
    const fault = { at: at(9), message: "disk \u001b[31m\r\nfull", next_step: null };
    const text = lifeText({ ...LIFE, state: { ...LIFE.state!, fault }, missing: ["c1: \u0007"] });
    expect(text).toContain("disk ?[31m full\n");
    expect(text).toContain("- c1: ?\n");
  });

  it("shows a move with its path, its stages, its end and its caller, and operations without a caller", () => {
    const move: ShownTask = {
      ...BUILD,
      ...{ kind: "resize", hops: [], attempts: [], reason: "h3: no power", outcome: "error" },
      stages: [{ at: at(3), stage: "preparing", host: "h3" }],
      move: { from: "h2", to: "h3", status: "error", note: "" },
    };
    expect(
      told({ ...LIFE, request: null, tasks: [move, { ...move, kind: "confirm", asked_by: null, move: null }] }),
    ).toEqual([
      "resize: begins from h2 to h3, asked for by user eve of project p, request req-1",
      "confirm: begins, begun by the cell itself",
      "resize: taken by conductor conductor-1",
      "confirm: taken by conductor conductor-1",
      "resize: reaches the stage preparing (h3)",
      "confirm: reaches the stage preparing (h3)",
      "resize: ends: error, the move is error: h3: no power",
      "confirm: ends: error: h3: no power",
    ]);
  });

  it("shows a deletion without a task, refused moves, waits, and what could not be read", () => {
    const refused = { id: "m", kind: "migrate", state: "refused", fault: "no room", asked_by: ASKED, at: at(2) };
    const life: ShownLife = {
      ...{ ...LIFE, state: null, tasks: [], waits: ["A waits for B."], missing: ["Cell north does not answer."] },
      ...{ deletion: { request_id: "req-9", at: at(8) }, requested_moves: [{ ...refused, updated_at: at(4) }] },
    };
    expect(told(life).slice(1)).toEqual([
      "migrate: asked for by user eve of project p, request req-1",
      "migrate: refused: no room",
      "delete: asked for by request req-9",
    ]);
    const text = lifeText(life);
    expect(text).toContain("its request is dispatched, in cell north\n");
    expect(text).toContain("Awaited now:\n- A waits for B.\n");
    expect(text).toContain("Not known:\n- Cell north does not answer.\n");
  });
});
