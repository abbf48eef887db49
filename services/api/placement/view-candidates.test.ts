import { expect, test } from "vitest";
import { resourceClass } from "../../../core/ledger/ids.ts";
import { ViewError } from "../../../core/stores/cell/view-source.ts";
import { provider, viewOf } from "../../../test/rigs/view-builders.ts";
import type { PlacementCall } from "./http.ts";
import { Microversion } from "./microversion.ts";
import { readCandidateRequest } from "./request-groups.ts";
import { createViewCandidates } from "./view-candidates.ts";

const query = new URLSearchParams("resources=VCPU:1");
const request = readCandidateRequest({ query, version: new Microversion(39) } as PlacementCall);

/** A view of some hosts, whose source answers when the test says so. */
function setUp() {
  const view = viewOf([{ kind: "class-known", resourceClass: resourceClass("VCPU") }], provider("host0", { VCPU: 8 }));
  const questions: PromiseWithResolvers<boolean>[] = [];
  const waitUntilSeen = () => {
    const question = Promise.withResolvers<boolean>();
    questions.push(question);
    return question.promise;
  };
  const bounds = { strategy: "depth-first", candidatesMax: -1, stepsMax: 1_000, freshnessDeadlineMs: 1_000 } as const;
  const source = createViewCandidates(() => [{ view, source: { waitUntilSeen } }], bounds);
  /** The number of hosts that each search has found, in order, and the number of results that were released. */
  const searches: number[] = [];
  const counts = { released: 0 };
  const ask = async (): Promise<number> => {
    const outcome = await source.candidates(request, 0, (found) => {
      let hosts = 0;
      while (found.next() !== null) hosts += 1;
      searches.push(hosts);
      const release = (): void => {
        counts.released += 1;
      };
      return { hosts, release };
    });
    if (outcome.kind !== "found") throw new Error(outcome.kind);
    return outcome.presented.hosts;
  };
  const addHost = (name: string) => view.applyAll(provider(name, { VCPU: 8 }));
  return { questions, searches, counts, ask, addHost };
}

test("a caller that comes alone is answered by a search that was made while the database was asked", async () => {
  const { questions, searches, counts, ask, addHost } = setUp();
  const answer = ask();
  expect(searches).toEqual([1]);
  addHost("later");
  questions[0]?.resolve(true);
  expect([await answer, searches, counts.released]).toEqual([1, [1], 0]);
});

test("a search of a view that was too old is repeated, and the next searches wait for their view", async () => {
  const { questions, searches, counts, ask, addHost } = setUp();
  const answer = ask();
  addHost("before");
  questions[0]?.resolve(false);
  expect([await answer, searches, counts.released]).toEqual([2, [1, 2], 1]);
  for (let patient = 1; patient <= 4; patient += 1) {
    const next = ask();
    expect(searches).toHaveLength(1 + patient);
    questions.at(-1)?.resolve(false);
    expect(await next).toBe(2);
  }
  const eager = ask();
  expect(searches).toHaveLength(7);
  questions.at(-1)?.resolve(true);
  expect([await eager, counts.released]).toEqual([2, 1]);
});

test("of callers that come together only the first one searches before its view is known to be fresh", async () => {
  const { questions, searches, ask, addHost } = setUp();
  const answers = [ask(), ask(), ask()];
  expect(searches).toEqual([1]);
  addHost("before");
  for (const question of questions) question.resolve(false);
  expect([await Promise.all(answers), searches.length]).toEqual([[2, 2, 2], 4]);
});

test("a view that does not catch up is no answer, and what was found in it is released", async () => {
  const { questions, searches, counts, ask } = setUp();
  const answer = ask();
  questions[0]?.reject(new ViewError("behind", "a cell", "it does not answer"));
  await expect(answer).rejects.toThrow("it does not answer");
  expect([searches, counts.released]).toEqual([[1], 1]);
});
