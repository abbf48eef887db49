import { hash } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ManualClock } from "../../../runtime/manual-clock.ts";
import type { SharedCache } from "../../../runtime/shared-cache.ts";
import { eventually } from "../../../test/rigs/eventually.ts";
import { type FakeKeystone, passwordOf, startFakeKeystone, tokenDocument } from "../../../test/rigs/fake-keystone.ts";
import { KeystoneAuthenticator } from "./keystone-authenticator.ts";
import { DEFAULT_KEYSTONE_SETTINGS, type KeystoneSettings } from "./keystone-settings.ts";

const START_MS = Date.parse("2026-01-01T00:00:00Z");
const HOUR_MS = 3_600_000;

/** The cache that two processes share. */
class FakeShared implements SharedCache {
  readonly entries = new Map<string, { readonly value: string; readonly ttlMs: number }>();
  async get(key: string): Promise<string | null> {
    return this.entries.get(key)?.value ?? null;
  }
  async set(key: string, value: string, ttlMs: number): Promise<void> {
    this.entries.set(key, { value, ttlMs });
  }
}

let keystone: FakeKeystone;
let clock: ManualClock;
let told: string[];
let open: KeystoneAuthenticator[];

beforeEach(async () => {
  keystone = await startFakeKeystone();
  clock = new ManualClock(START_MS);
  told = [];
  open = [];
});
afterEach(async () => {
  for (const authenticator of open) await authenticator.close();
  await keystone.close();
});

function create(settings: Partial<KeystoneSettings> = {}, shared: SharedCache | null = null): KeystoneAuthenticator {
  const authenticator = new KeystoneAuthenticator(
    {
      clock,
      shared,
      onLost: (error) => told.push(`lost: ${error.code}: ${error.message}`),
      onBack: () => told.push("back"),
    },
    {
      ...DEFAULT_KEYSTONE_SETTINGS,
      url: keystone.url,
      credentials: passwordOf("placement", "secret"),
      ...settings,
    },
  );
  open.push(authenticator);
  return authenticator;
}

const ask = (authenticator: KeystoneAuthenticator, token: string | undefined) =>
  authenticator.authenticate({ headers: { "x-auth-token": token } });
/** Advances the clock past the pauses between tries until the answer is there. */
async function withPauses<Answer>(answer: Promise<Answer>): Promise<Answer> {
  let settled = false;
  const watched = answer.finally(() => {
    settled = true;
  });
  watched.catch(() => {});
  await eventually("an answer", () => {
    clock.advance(50);
    return settled;
  });
  return watched;
}

const issue = (token: string, lifeMs = HOUR_MS) =>
  keystone.tokens.set(
    token,
    tokenDocument({
      user: "u1",
      project: "p1",
      roles: ["admin", "member", "reader"],
      expiresAtMs: clock.now() + lifeMs,
    }),
  );
const identity = {
  userId: "u1",
  projectId: "p1",
  domainId: null,
  systemScope: null,
  roles: ["admin", "member", "reader"],
};
const questions = () => keystone.asked.filter((what) => what !== "login");

describe("a valid token", () => {
  test("belongs to its user and its project, with its roles and those they imply", async () => {
    issue("t1");
    expect(await ask(create(), "t1")).toEqual(identity);
    expect(keystone.asked).toEqual(["login", "t1"]);
  });
  test.each([
    ["system", { system: true }, { systemScope: "all" }],
    ["domain", { domain: "d1" }, { domainId: "d1" }],
    ["no", {}, {}],
  ])("of %s scope has no project", async (_scope, fields, expected) => {
    keystone.tokens.set(
      "t1",
      tokenDocument({ user: "u1", roles: ["reader"], expiresAtMs: START_MS + HOUR_MS, ...fields }),
    );
    const found = { userId: "u1", projectId: null, domainId: null, systemScope: null, roles: ["reader"] };
    expect(await ask(create(), "t1")).toEqual({ ...found, ...expected });
  });
  test("is validated once per cache time, even if it is revoked meanwhile", async () => {
    const authenticator = create();
    issue("t1");
    await ask(authenticator, "t1");
    keystone.tokens.delete("t1");
    clock.advance(299_999);
    expect(await ask(authenticator, "t1")).toEqual(identity);
    expect(questions()).toEqual(["t1"]);
    clock.advance(1);
    await expect(ask(authenticator, "t1")).rejects.toMatchObject({ status: 401 });
  });
  test("is accepted no longer than until it expires", async () => {
    const authenticator = create();
    issue("t1", 60_000);
    await ask(authenticator, "t1");
    clock.advance(60_000);
    keystone.tokens.delete("t1");
    await expect(ask(authenticator, "t1")).rejects.toMatchObject({ status: 401 });
    expect(questions()).toEqual(["t1", "t1"]);
  });
  test("is validated once for concurrent calls", async () => {
    const authenticator = create();
    issue("t1");
    const { promise, resolve } = Promise.withResolvers<void>();
    keystone.hold = () => promise;
    const answers = Array.from({ length: 20 }, () => ask(authenticator, "t1"));
    await eventually("the question", () => questions().length > 0);
    resolve();
    expect(await Promise.all(answers)).toEqual(answers.map(() => identity));
    expect(questions()).toEqual(["t1"]);
  });
});

describe("a token that is not valid", () => {
  test("gets 401, with the place to get one", async () => {
    await expect(ask(create(), "t1")).rejects.toMatchObject({
      status: 401,
      headers: { "www-authenticate": `Keystone uri="${keystone.url}"` },
    });
  });
  test("is validated again after ten seconds", async () => {
    const authenticator = create();
    await expect(ask(authenticator, "t1")).rejects.toMatchObject({ status: 401 });
    issue("t1");
    clock.advance(9_999);
    await expect(ask(authenticator, "t1")).rejects.toMatchObject({ status: 401 });
    expect(questions()).toEqual(["t1"]);
    clock.advance(1);
    expect(await ask(authenticator, "t1")).toEqual(identity);
  });
  test.each([undefined, "", "two words", "line\nbreak", "ümlaut", "x".repeat(16_385)])(
    "is not asked about when it cannot be one: %j",
    async (token) => {
      await expect(ask(create(), token)).rejects.toMatchObject({ status: 401 });
      expect(keystone.asked).toEqual([]);
    },
  );
});

describe("this service's own token", () => {
  test("is requested once for all calls", async () => {
    const authenticator = create();
    for (const token of ["t1", "t2", "t3"]) issue(token);
    await Promise.all(["t1", "t2", "t3"].map((token) => ask(authenticator, token)));
    expect(keystone.asked.filter((what) => what === "login")).toEqual(["login"]);
  });
  test("is requested again, once for all calls, when Keystone no longer accepts it", async () => {
    const authenticator = create();
    for (const token of ["t1", "t2", "t3"]) issue(token);
    await ask(authenticator, "t1");
    keystone.revokeServiceToken();
    await Promise.all(["t2", "t3"].map((token) => ask(authenticator, token)));
    expect(keystone.asked.filter((what) => what === "login")).toEqual(["login", "login"]);
  });
  test("may be refused twice, because Keystone also revokes a token that it issues within the same second as the revocation", async () => {
    const authenticator = create();
    for (const token of ["t1", "t2"]) issue(token);
    await ask(authenticator, "t1");
    keystone.serviceTokensRefused = 2;
    expect(await withPauses(ask(authenticator, "t2"))).toEqual(identity);
    expect(keystone.asked.filter((what) => what === "login")).toHaveLength(3);
    keystone.serviceTokensRefused = 3;
    issue("t3");
    await expect(withPauses(ask(authenticator, "t3"))).rejects.toMatchObject({ status: 503 });
  });
  test("leads to 503 and one report when it cannot be obtained, until the password is corrected", async () => {
    const authenticator = create({ credentials: passwordOf("placement", "changed") });
    issue("t1");
    for (const _ of [1, 2])
      await expect(ask(authenticator, "t1")).rejects.toMatchObject({ status: 503, headers: { "retry-after": "5" } });
    expect(told).toEqual([
      "lost: keystone-refuses-service: Keystone does not let this service's user in: it answers 401",
    ]);
    keystone.password = "changed";
    expect(await ask(authenticator, "t1")).toEqual(identity);
    expect(told).toHaveLength(2);
  });
});

describe("while Keystone is down", () => {
  test.each([[0], [500], [503], [429]])(
    "(%i) strangers get 503, known tokens are accepted until they expire, and the outage is reported once",
    async (broken) => {
      const authenticator = create();
      issue("t1");
      issue("t2");
      await ask(authenticator, "t1");
      keystone.broken = broken;
      keystone.asked.length = 0;
      for (const _ of [1, 2])
        await expect(withPauses(ask(authenticator, "t2"))).rejects.toMatchObject({
          status: 503,
          message: "The identity service does not answer, so the token could not be validated; try again later.",
        });
      expect(questions()).toHaveLength(6);
      expect(await ask(authenticator, "t1")).toEqual(identity);
      expect(told).toEqual([
        expect.stringMatching(/^lost: keystone-unreachable: Keystone (does not answer: \w+|answers \d+)$/),
      ]);
      keystone.broken = null;
      expect(await ask(authenticator, "t2")).toEqual(identity);
      expect(told[1]).toBe("back");
    },
  );
  test("a temporary failure is hidden by a retry", async () => {
    const authenticator = create();
    issue("t1");
    keystone.broken = 503;
    const answer = ask(authenticator, "t1");
    await eventually("the first try", () => keystone.asked.length === 1 && clock.pending === 1);
    keystone.broken = null;
    expect(await withPauses(answer)).toEqual(identity);
    expect(told).toEqual([]);
  });
  test("a Keystone that never answers is given up in time", async () => {
    const authenticator = create({ timeoutMs: 50, triesMax: 1 });
    issue("t1");
    keystone.hold = () => new Promise(() => {});
    await expect(ask(authenticator, "t1")).rejects.toMatchObject({ status: 503 });
  });
  test("the number of waiting tokens is limited", async () => {
    const authenticator = create({ validationsMax: 1 });
    issue("t1");
    const { promise, resolve } = Promise.withResolvers<void>();
    keystone.hold = () => promise;
    const first = ask(authenticator, "t1");
    await expect(ask(authenticator, "t2")).rejects.toMatchObject({
      status: 503,
      message: "Too many tokens are being validated; try again later.",
    });
    resolve();
    expect(await first).toEqual(identity);
  });
});

test.each([
  {},
  { token: {} },
  { token: { user: { id: 1 }, expires_at: "2026-01-01T01:00:00Z" } },
  { token: { user: { id: "u" }, expires_at: "soon" } },
  "text",
])("an answer that Keystone does not give is 503: %j", async (document) => {
  keystone.tokens.set("t1", document);
  await expect(ask(create(), "t1")).rejects.toMatchObject({ status: 503 });
  expect(told).toEqual(["lost: keystone-malformed: Keystone's answer about a token does not match its API"]);
});

describe("the shared cache", () => {
  test("saves another process the request, and never contains the token", async () => {
    const shared = new FakeShared();
    issue("t1", 60_000);
    await ask(create({}, shared), "t1");
    expect([...shared.entries]).toEqual([
      [hash("sha256", "t1"), { value: expect.stringContaining('"u1"'), ttlMs: 60_000 }],
    ]);
    expect(JSON.stringify([...shared.entries])).not.toContain('"t1"');
    keystone.broken = 0;
    expect(await ask(create({}, shared), "t1")).toEqual(identity);
  });
  test("is not believed beyond the token's expiry, or when it contains something else", async () => {
    const shared = new FakeShared();
    const late = JSON.stringify({ identity, untilMs: START_MS });
    for (const text of [
      late,
      "{",
      "{}",
      '{"identity":{"userId":1,"roles":[]},"untilMs":9e15}',
      '{"identity":{"roles":"admin"},"untilMs":9e15}',
    ]) {
      shared.entries.set(hash("sha256", "t1"), { value: text, ttlMs: 1 });
      await expect(ask(create({}, shared), "t1")).rejects.toMatchObject({ status: 401 });
    }
  });
  test("is believed no longer than this process would believe Keystone", async () => {
    const shared = new FakeShared();
    await shared.set(hash("sha256", "t1"), JSON.stringify({ identity, untilMs: START_MS + HOUR_MS }), HOUR_MS);
    const authenticator = create({}, shared);
    expect(await ask(authenticator, "t1")).toEqual(identity);
    shared.entries.clear();
    clock.advance(300_000);
    await expect(ask(authenticator, "t1")).rejects.toMatchObject({ status: 401 });
  });
  test("does not store invalid tokens", async () => {
    const shared = new FakeShared();
    await expect(ask(create({}, shared), "t1")).rejects.toMatchObject({ status: 401 });
    expect(shared.entries.size).toBe(0);
  });
});
