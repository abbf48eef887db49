import { expect, test } from "vitest";
import { ManualClock } from "../../../runtime/manual-clock.ts";
import { TokenBook } from "./token-book.ts";

const FIELDS = { userId: "u", projectId: "p", roles: ["reader"], methods: ["password"] } as const;

function openBook(perUserMax = 3) {
  const clock = new ManualClock(1_000);
  return { clock, book: new TokenBook({ clock }, { lifetimeMs: 60_000, perUserMax }) };
}

test("a token is found until it expires or is revoked, and no other text is", () => {
  const { clock, book } = openBook();
  const { token, issued } = book.issue(FIELDS);
  expect(book.find(token)).toEqual({ ...FIELDS, auditId: issued.auditId, issuedAtMs: 1_000, expiresAtMs: 61_000 });
  expect([book.find(""), book.find(`${token}x`), book.find(issued.auditId)]).toEqual([null, null, null]);
  const other = book.issue(FIELDS);
  book.revoke(token);
  book.revoke(token);
  expect(book.find(token)).toBeNull();
  clock.advance(59_999);
  expect(book.find(other.token)).not.toBeNull();
  clock.advance(1);
  expect(book.find(other.token)).toBeNull();
});

test("a token for a token ends with the first one", () => {
  const { book } = openBook();
  expect(book.issue(FIELDS, 30_000).issued.expiresAtMs).toBe(30_000);
  expect(book.issue(FIELDS, 90_000).issued.expiresAtMs).toBe(61_000);
});

test("one token too many takes the place of the same user's oldest", () => {
  const { book } = openBook();
  const foreign = book.issue({ ...FIELDS, userId: "v" });
  const own = Array.from({ length: 5 }, () => book.issue(FIELDS).token);
  expect(own.map((token) => book.find(token) !== null)).toEqual([false, false, true, true, true]);
  expect(book.find(foreign.token)).not.toBeNull();
  expect(book.size).toBe(4);
});

test("expired tokens leave the memory when their user gets a new one", () => {
  const { clock, book } = openBook(100);
  for (let count = 0; count < 10; count += 1) book.issue(FIELDS);
  clock.advance(60_000);
  book.issue(FIELDS);
  expect(book.size).toBe(1);
});
