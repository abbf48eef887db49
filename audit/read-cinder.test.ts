import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { type AuditedStorage, readCinder } from "./read-cinder.ts";

const NO_CELLS = { apiUrl: "postgresql://127.0.0.1:1/none", cells: [] };
type Storage = AuditedStorage["storage"];
const reading = (storage: Partial<Storage>, isAdmin = true) =>
  readCinder(
    {
      storage: { volumesWithStatus: async () => [], attachments: async () => [], ...storage },
      ...{ isShared: false, seesAllProjects: async () => isAdmin },
    },
    NO_CELLS,
    0,
  );
const attachment = (id: string) => ({ id, volumeId: id, serverUuid: id }) as never;

test("a login to which Cinder shows only its own project is named, and nothing is compared", async () => {
  let asked = 0;
  const attachments = async () => {
    asked += 1;
    return [];
  };
  expect(await reading({ attachments }, false)).toEqual({
    kind: "unread",
    reason: expect.stringMatching(/BERTH_KEYSTONE_USER is no admin of Cinder.*give the user the role admin/),
  });
  expect(asked).toBe(0);
});

test("a Cinder that gives the same page for ever does not keep the audit", async () => {
  const page = [attachment("a"), attachment("b")];
  expect(await reading({ attachments: async () => page })).toEqual({
    kind: "unread",
    reason: expect.stringMatching(/^Cinder's list of attachments has no end: the page behind b repeats/),
  });
});

test("a Cinder whose list goes on with new entries for ever does not keep the audit", async () => {
  const attachments = async () => [attachment(randomUUID())];
  expect(await reading({ attachments })).toEqual({
    kind: "unread",
    reason: expect.stringMatching(/^Cinder's list of attachments has no end: 20000 were read/),
  });
});
