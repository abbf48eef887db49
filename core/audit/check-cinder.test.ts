import { describe, expect, test } from "vitest";
import { type AuditedHolder, type CinderFacts, checkCinder, pairKey } from "./check-cinder.ts";

const holder = (values: Partial<AuditedHolder> = {}): AuditedHolder => ({
  ...{ cell: "c-1", isAtRest: true, volumes: [], inDoubt: [] },
  ...values,
});
const attachment = (volumeId: string, serverUuid: string) => ({
  id: `a-${volumeId}-${serverUuid}`,
  volumeId,
  serverUuid,
});
const facts = (values: Partial<CinderFacts> = {}): CinderFacts => ({
  ...{ attachments: [], held: new Map(), servers: new Map(), named: new Set(), underWay: new Set() },
  ...{ isEveryCellRead: true, isShared: false },
  ...values,
});
const found = (values: Partial<CinderFacts>) =>
  checkCinder(facts(values)).map(({ what, where }) => `${what}: ${where}`);

const LACKING = "a server has a volume without an attachment in Cinder";
const LEFT = "Cinder has an attachment of a volume that its server does not have";
const UNKNOWN = "Cinder has an attachment of a server that this cloud does not have";
const NOBODYS = "Cinder takes a volume for that of a server, and nobody has it";

test("finds nothing where Cinder and the cells agree", () => {
  const servers = new Map([["s", holder({ volumes: ["v"] })]]);
  expect(found({ servers, attachments: [attachment("v", "s")], held: new Map([["v", "in-use"]]) })).toEqual([]);
});

describe("a server's volume without an attachment", () => {
  const servers = new Map([["s", holder({ volumes: ["v"] })]]);

  test("is named, with the command that connects it again", () => {
    expect(checkCinder(facts({ servers }))).toMatchObject([
      { what: LACKING, where: "cell c-1, server s, volume v", proof: expect.stringContaining("reboot --hard s") },
    ]);
  });

  test("is named as a danger if another server has it in Cinder", () => {
    const both = new Map([...servers, ["t", holder({ volumes: ["v"] })]]);
    const [first, ...others] = checkCinder(facts({ servers: both, attachments: [attachment("v", "t")] }));
    expect([first?.proof, others]).toEqual([expect.stringContaining("server t: two guests may write to it"), []]);
  });

  test("is not named while something is under way with the server", () => {
    expect(found({ servers: new Map([["s", holder({ volumes: ["v"], isAtRest: false })]]) })).toEqual([]);
  });
});

describe("an attachment", () => {
  const attachments = [attachment("v", "s")];

  test("of a volume that its server does not have is named, unless something is under way or the server may have it in another one's place", () => {
    const named = (values: Partial<AuditedHolder>) => found({ attachments, servers: new Map([["s", holder(values)]]) });
    expect(named({})).toEqual([`${LEFT}: cell c-1, server s, volume v, attachment a-v-s`]);
    expect([named({ isAtRest: false }), named({ volumes: ["v"] }), named({ inDoubt: ["v", "w"] })]).toEqual([
      [],
      [],
      [],
    ]);
  });

  test("that apis are at work on is not named", () => {
    const underWay = new Set([pairKey("v", "s")]);
    expect(found({ attachments, underWay, servers: new Map([["s", holder()]]) })).toEqual([]);
    expect(found({ attachments, underWay })).toEqual([]);
  });

  test("of an unknown server is named only if all cells were read and no other cloud uses Cinder", () => {
    expect(found({ attachments })).toEqual([`${UNKNOWN}: server s, volume v, attachment a-v-s`]);
    expect([found({ attachments, isEveryCellRead: false }), found({ attachments, isShared: true })]).toEqual([[], []]);
  });

  test("of no server, as of a host alone, is nobody's affair here", () => {
    expect(found({ attachments: [attachment("v", "")], held: new Map([["v", "in-use"]]) })).toEqual([]);
  });
});

describe("a volume that Cinder takes for that of a server", () => {
  const held = new Map([["v", "in-use"]]);

  test("is named if nobody has it, with the command that frees it", () => {
    expect(checkCinder(facts({ held }))).toMatchObject([
      { what: NOBODYS, where: "volume v", proof: expect.stringContaining("--state available --detached v") },
    ]);
  });

  test("is not named as nobody's if a server has it, or may have it", () => {
    expect(found({ held, servers: new Map([["s", holder({ volumes: ["v"] })]]) })).toEqual([
      `${LACKING}: cell c-1, server s, volume v`,
    ]);
    expect(found({ held, servers: new Map([["s", holder({ inDoubt: ["v", "w"] })]]) })).toEqual([]);
  });

  test("is not named if the API database gives it to a server, even to one that no cell has", () => {
    expect(found({ held, named: new Set(["v"]) })).toEqual([]);
  });

  test("is not named if other clouds use Cinder, since a server of theirs may have it whose attachment was lost", () => {
    expect(found({ held, isShared: true })).toEqual([]);
  });

  test("is left alone while a cell could not be read, since one of its servers may have it", () => {
    expect(found({ held, isEveryCellRead: false })).toEqual([]);
  });
});
