import Fastify from "fastify";
import { expect, it } from "vitest";
import { boundLists } from "./bound-lists.ts";
import type { Http } from "./create-http.ts";
import { ListBudget } from "./list-budget.ts";
import { AnyQuery } from "./schema.ts";

it("counts the rows of a list from its first read until it is sent, and nothing of other calls", async () => {
  const sizes = { rowsMax: 20, projectRowsMax: 20, waitingMax: 5, projectWaitingMax: 5, rowBytes: 1 };
  const budget = new ListBudget(sizes);
  const http = Fastify();
  boundLists(http as unknown as Http, budget, { pageMax: 10, sendMsMax: 60_000 });
  const during: number[] = [];
  const handler = async () => {
    during.push(budget.rows);
    return { things: [] };
  };
  const sent: number[] = [];
  const onSend = async () => void sent.push(budget.rows);
  const schema = { querystring: AnyQuery };
  http.get("/things", { schema, onSend }, handler);
  http.get("/found", { config: { pageParameters: ["limit", "marker"] }, schema, onSend }, handler);
  http.get("/things/:id", { schema }, handler);
  http.post("/things", { schema }, handler);
  http.get("/plain", handler);
  try {
    for (const [method, url] of [
      ["GET", "/things"],
      ["GET", "/things?limit=3"],
      ["HEAD", "/things"],
      ["GET", "/found?limit=3&marker=1"],
      ["GET", "/found?limit=3&size=1"],
      ["GET", "/things/1"],
      ["POST", "/things"],
      ["GET", "/plain"],
    ] as const) {
      expect((await http.inject({ method, url })).statusCode).toBe(200);
      expect(budget.rows).toBe(0);
    }
    expect(during).toEqual([10, 3, 10, 3, 10, 0, 0, 0]);
    // The answer of 13 bytes counts as 13 rows.
    expect(sent).toEqual([13, 13, 13, 13, 13]);
  } finally {
    await http.close();
  }
});
