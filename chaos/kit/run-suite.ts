import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { isClean } from "../../audit/audit-report.ts";
import { seededRandom } from "../../core/scheduling/seeded-random.ts";
import { ChaosApi } from "../chaos-api.ts";
import { ChaosHistory } from "../chaos-history.ts";
import { type ChaosServer, isOpen, newServer } from "../chaos-server.ts";
import { checkHistory, failuresOf } from "../checkers/checker.ts";
import { standardCheckers } from "../checkers/standard-checkers.ts";
import { createFlavors } from "../create-flavors.ts";
import { findUnanswered, lookForReturned } from "../find-unanswered.ts";
import { lawVerdicts } from "../law-verdicts.ts";
import { askForDelete } from "../load.ts";
import { ServerWatch } from "../server-watch.ts";
import { createBody, type NextRequest, type Turn, type WantedServer } from "./generators.ts";
import type { NemesisStage } from "./nemesis.ts";
import type { Suite, SuiteCloud, SuiteResult, SuiteServer } from "./suite.ts";

const LOOK_MS = 20;
/** A finding of the audit counts only when it persists for this long; before that, it may be work in flight. */
const IN_FLIGHT_MS = 30_000;
const AUDIT_PAUSE_MS = 1_000;
const FAILED_BUILD = { outcome: "reschedule", reason: "failed by the suite" } as const;

/**
 * Carries out a suite on a cloud that serves: load and faults, then rest until everything accepted has ended, then the audit of the six
 * laws and the checkers. Finally it deletes all of its servers. Rejects when the nemesis throws; failures of the cloud are returned in
 * `failures`.
 */
export function runSuite<Cloud extends SuiteCloud>(suite: Suite<Cloud>): Promise<SuiteResult> {
  return new SuiteRun(suite).carryOut();
}

class SuiteRun<Cloud extends SuiteCloud> {
  readonly #suite: Suite<Cloud>;
  readonly #history = new ChaosHistory();
  readonly #api: ChaosApi;
  readonly #random: () => number;
  readonly #servers: ChaosServer[] = [];
  /** The wanted properties of each server, by its name. */
  readonly #wanted = new Map<string, WantedServer>();
  readonly #alive = new Map<string, ChaosServer>();
  readonly #prefix = `suite-${randomUUID().slice(0, 8)}`;
  readonly #over = new AbortController();
  #faults = 0;
  #failShare = 0;
  #flavor = "";

  constructor(suite: Suite<Cloud>) {
    this.#suite = suite;
    this.#random = seededRandom(suite.seed ?? 1);
    const { cloud, timeoutMs = 10_000 } = suite;
    this.#api = new ChaosApi({ urls: () => cloud.apiUrls, history: this.#history, timeoutMs });
  }

  async carryOut(): Promise<SuiteResult> {
    const { name, cloud, seed = 1, checkers = [] } = this.#suite;
    const history = this.#history;
    const parts = cloud.parts.map((part) => part.name);
    history.write({ who: "runner", what: "start", plan: name, target: cloud.target, seed, parts });
    const onEnd = () => undefined;
    const watch = new ServerWatch({ api: this.#api, history, servers: this.#servers, onEnd });
    try {
      this.#flavor = (await createFlavors(this.#api)).small;
      watch.begin();
      await this.#loadAndHarm();
      const doubled = await this.#settle();
      await this.#audit();
      const servers = this.#outcome();
      await this.#removeAll();
      await watch.stop();
      const found = failuresOf(checkHistory(history.lines(), [...standardCheckers, ...checkers]));
      const failures = [...doubled, ...found];
      history.write({ who: "runner", what: "end", passed: failures.length === 0, failures });
      return { failures, servers, history: history.lines() };
    } finally {
      await watch.stop();
      await this.#api.close();
    }
  }

  async #loadAndHarm(): Promise<void> {
    const { clients = 4, nemesis, withinMs = 60_000 } = this.#suite;
    const begunMs = this.#history.now();
    // Settled at once, because a rejection must not be unhandled while the clients still work.
    const harm = Promise.allSettled([nemesis?.(this.#stage())]);
    const ended = setTimeout(() => this.#over.abort(), withinMs);
    try {
      await Promise.all(Array.from({ length: clients }, (_, client) => this.#client(client, begunMs)));
    } finally {
      clearTimeout(ended);
      this.#over.abort();
    }
    const [harmed] = await harm;
    if (harmed.status === "rejected") throw harmed.reason;
  }

  async #client(client: number, begunMs: number): Promise<void> {
    const { generator } = this.#suite;
    while (!this.#over.signal.aborted) {
      const servers = [...this.#alive.keys()];
      const turn: Turn = { client, atMs: this.#history.now() - begunMs, random: this.#random, servers };
      const next = generator.next(turn);
      if (next === null) return;
      if ("waitMs" in next) await this.#pause(next.waitMs);
      else await this.#ask(next, `client-${client + 1}`);
    }
  }

  async #ask(operation: NextRequest, who: string): Promise<void> {
    switch (operation.op) {
      case "create":
        return this.#create(operation.server, who);
      case "delete": {
        const server = this.#alive.get(operation.server);
        this.#alive.delete(operation.server);
        if (server) await askForDelete(server, { api: this.#api, history: this.#history });
        return;
      }
      case "show": {
        const { server } = operation;
        await this.#api.ask({ who, op: "show", method: "GET", path: `/servers/${server}`, server });
        return;
      }
      case "list":
        await this.#api.ask({ who, op: "list", method: "GET", path: "/servers/detail" });
        return;
      default:
        operation satisfies never;
    }
  }

  async #create(wanted: WantedServer, who: string): Promise<void> {
    const server = newServer(`${this.#prefix}-${this.#servers.length + 1}`, who, this.#history.now());
    this.#servers.push(server);
    this.#wanted.set(server.name, wanted);
    const failing = this.#failShare > 0 ? { ...FAILED_BUILD, probability: this.#failShare } : null;
    const fake = failing === null ? wanted.fake : { ...wanted.fake, ...failing };
    const asked = fake === undefined ? wanted : { ...wanted, fake };
    const body = createBody(server.name, asked, this.#flavor);
    const answer = await this.#api.ask({ who, op: "create", method: "POST", path: "/servers", body });
    server.requestId = answer.id;
    server.create = answer.kind === "ok" ? "accepted" : answer.kind;
    if (answer.kind !== "ok") return;
    server.uuid = (answer.body as { readonly server: { readonly id: string } }).server.id;
    server.acceptedMs = this.#history.now();
    this.#alive.set(server.uuid, server);
  }

  #stage(): NemesisStage<Cloud> {
    return {
      cloud: this.#suite.cloud,
      random: this.#random,
      signal: this.#over.signal,
      pause: (ms) => this.#pause(ms),
      failBuilds: (share) => {
        this.#failShare = share;
      },
      fault: async (about, during) => {
        this.#faults += 1;
        const line = { who: "nemesis", faultId: this.#faults, ...about } as const;
        this.#history.write({ ...line, what: "fault-begins" });
        try {
          await during();
        } finally {
          this.#history.write({ ...line, what: "fault-ends" });
        }
      },
    };
  }

  /**
   * Looks up servers of unanswered creates by their names, and waits until everything has ended. Resolves with descriptions of servers that
   * exist twice.
   */
  async #settle(): Promise<readonly string[]> {
    const begunMs = this.#history.now();
    const doubled = await findUnanswered({ servers: this.#servers, api: this.#api, history: this.#history });
    const isSettled = await this.#untilEnded();
    const open = this.#servers.filter(isOpen).length;
    const ms = Math.round(this.#history.now() - begunMs);
    this.#history.write({ who: "runner", what: isSettled ? "settled" : "not-settled", open, ms });
    return doubled;
  }

  async #audit(): Promise<void> {
    const deadline = this.#history.now() + IN_FLIGHT_MS;
    for (;;) {
      const report = await this.#suite.cloud.audit({ pauseMs: AUDIT_PAUSE_MS, patienceMs: 0 });
      if (!isClean(report) && this.#history.now() < deadline) continue;
      for (const verdict of lawVerdicts([report])) this.#history.write({ who: "auditor", what: "verdict", ...verdict });
      return;
    }
  }

  #outcome(): readonly SuiteServer[] {
    return this.#servers.flatMap(({ name, uuid, state, host, fault, deleting }) => {
      const wanted = this.#wanted.get(name) ?? {};
      return uuid === null ? [] : [{ uuid, wanted, state, host, fault, deleted: deleting !== "no" }];
    });
  }

  async #removeAll(): Promise<void> {
    const left = this.#servers.filter(({ uuid, state, lost }) => uuid !== null && state !== "DELETED" && !lost);
    await Promise.all(left.map((server) => askForDelete(server, { api: this.#api, history: this.#history })));
    await this.#untilEnded();
    await lookForReturned({ servers: this.#servers, api: this.#api });
  }

  async #untilEnded(): Promise<boolean> {
    const deadline = this.#history.now() + (this.#suite.settleMs ?? 60_000);
    while (this.#servers.some(isOpen)) {
      if (this.#history.now() > deadline) return false;
      await delay(LOOK_MS);
    }
    return true;
  }

  async #pause(ms: number): Promise<void> {
    // The end of the load aborts the pause. This is not an error.
    await delay(ms, undefined, { signal: this.#over.signal }).catch(() => undefined);
  }
}
