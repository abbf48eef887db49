import { describe, expect, it } from "vitest";
import { ListBudget, type ListBudgetSettings, type ListShare } from "./list-budget.ts";

const SETTINGS: ListBudgetSettings = {
  ...{ rowsMax: 20, projectRowsMax: 10, waitingMax: 5, projectWaitingMax: 3, rowBytes: 100 },
};

/** Creates a budget and records by name, in order, which lists it admits. */
function world(settings: Partial<ListBudgetSettings> = {}) {
  const budget = new ListBudget({ ...SETTINGS, ...settings });
  const shares = new Map<string, ListShare>();
  const enter = (name: string, projectId: string, rows: number) =>
    budget.enter(projectId, rows, (share) => void shares.set(name, share));
  const share = (name: string): ListShare => {
    const found = shares.get(name);
    if (found === undefined) throw new Error(`${name} was not admitted`);
    return found;
  };
  return { budget, enter, share, admitted: () => [...shares.keys()] };
}

describe("ListBudget", () => {
  it("admits lists that fit at once, and the others when earlier ones have been sent", () => {
    const { budget, enter, share, admitted } = world();
    for (const [name, project] of [
      ["a1", "a"],
      ["b1", "b"],
      ["c1", "c"],
    ] as const)
      enter(name, project, 10);
    expect(admitted()).toEqual(["a1", "b1"]);
    expect([budget.rows, budget.waiting]).toEqual([20, 1]);
    share("b1").release();
    share("b1").release();
    expect(admitted()).toEqual(["a1", "b1", "c1"]);
    share("a1").release();
    share("c1").release();
    expect([budget.rows, budget.waiting]).toEqual([0, 0]);
  });

  it("keeps a project within its share, and lets other projects overtake it", () => {
    const { enter, admitted } = world();
    enter("a1", "a", 6);
    enter("a2", "a", 6);
    enter("a3", "a", 1);
    enter("b1", "b", 10);
    expect(admitted()).toEqual(["a1", "b1"]);
  });

  it("takes the projects in turn, and the lists of each in their order", () => {
    const { enter, share, admitted } = world({ rowsMax: 10 });
    enter("x", "x", 10);
    for (const name of ["a1", "a2", "a3"]) enter(name, "a", 10);
    for (const name of ["b1", "b2"]) enter(name, "b", 10);
    for (const name of ["x", "a1", "b1", "a2", "b2", "a3"]) share(name).release();
    expect(admitted()).toEqual(["x", "a1", "b1", "a2", "b2", "a3"]);
  });

  it("refuses a list with 503 when too many wait, of its project or of all", () => {
    const { enter } = world();
    for (const name of ["a0", "a1", "a2", "a3"]) enter(name, "a", 10);
    expect(() => enter("a4", "a", 10)).toThrow(expect.objectContaining({ status: 503 }));
    for (const name of ["b0", "b1", "b2"]) enter(name, "b", 10);
    expect(() => enter("c0", "c", 10)).toThrow(expect.objectContaining({ status: 503 }));
  });

  it("admits a list that exceeds its project's share when no other list of the project is under way", () => {
    const { enter, share, admitted } = world();
    enter("b1", "b", 1);
    enter("b2", "b", 1_000);
    enter("a1", "a", 1);
    expect(admitted()).toEqual(["b1", "a1"]);
    share("b1").release();
    expect(admitted()).toEqual(["b1", "a1", "b2"]);
  });

  it("counts an answer by its bytes once its size is known", () => {
    const { budget, enter, share, admitted } = world();
    enter("a1", "a", 10);
    enter("b1", "b", 10);
    enter("c1", "c", 10);
    share("a1").grow(50);
    expect(budget.rows).toBe(11);
    share("b1").grow(4_000);
    expect(budget.rows).toBe(11);
    enter("b2", "b", 1);
    share("a1").release();
    // For other projects it counts as its project's share. For its own project it counts in full.
    expect(admitted()).toEqual(["a1", "b1", "c1"]);
    share("c1").release();
    expect(admitted()).toEqual(["a1", "b1", "c1"]);
    share("b1").release();
    expect(admitted()).toEqual(["a1", "b1", "c1", "b2"]);
    share("b1").grow(4_000);
    expect(budget.rows).toBe(1);
  });

  it("forgets a waiting list whose client has gone", () => {
    const { budget, enter, share, admitted } = world();
    enter("a1", "a", 10);
    const leave = enter("a2", "a", 10);
    enter("a3", "a", 10);
    leave();
    leave();
    expect(budget.waiting).toBe(1);
    share("a1").release();
    expect(admitted()).toEqual(["a1", "a3"]);
  });
});
