import { expect, test } from "vitest";
import type { VolumeRecord } from "../../../../core/stores/api/volume-store.ts";
import { ManualClock } from "../../../../runtime/manual-clock.ts";
import { VolumeEndWaiter } from "./volume-end-waiter.ts";

const A_VOLUME = {} as VolumeRecord;

type Answer = "waits" | "gone" | "still there";

/** A waiter, and the volumes that its servers still have. */
function open() {
  const clock = new ManualClock();
  const left = new Map<string, readonly VolumeRecord[]>();
  const errors: unknown[] = [];
  let looks = 0;
  const volumes = {
    volumesOfServers: async ([server = ""]: readonly string[]) => {
      looks += 1;
      if (server === "broken") throw new Error("no database");
      return left.get(server) ?? [];
    },
  };
  const waiter = new VolumeEndWaiter({
    ...{ volumes, clock, events: { volumesNotSettled: (error: unknown) => void errors.push(error) } },
  });
  /** Asks for the end of a server that was deleted at this moment, and tells the answer when it has come. */
  function ask(uuid: string, deletedAtMs: number | null = clock.now()): () => Promise<Answer> {
    let answer: Answer = "waits";
    void waiter.awaitEnd({ uuid, deletedAtMs }).then((isGone) => {
      answer = isGone ? "gone" : "still there";
    });
    return async () => {
      await turns();
      return answer;
    };
  }
  async function pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += 100) {
      clock.advance(100);
      await turns();
    }
  }
  return { clock, left, errors, ask, pass, looks: () => looks };
}

async function turns(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
}

test("waits until the volumes of the server were given back", async () => {
  const { left, ask, pass, clock } = open();
  left.set("s", [A_VOLUME]);
  const answer = ask("s");
  await pass(2_000);
  expect(await answer()).toBe("waits");
  left.delete("s");
  await pass(300);
  expect([await answer(), clock.pending]).toEqual(["gone", 0]);
});

test("answers at once for a server without volumes", async () => {
  const { ask } = open();
  expect(await ask("s")()).toBe("gone");
});

test("says after some seconds that the server is still there, and then keeps nobody else waiting for a while", async () => {
  const { left, ask, pass } = open();
  left.set("s", [A_VOLUME]);
  const answer = ask("s");
  await pass(4_900);
  expect(await answer()).toBe("waits");
  await pass(400);
  expect(await answer()).toBe("still there");
  expect(await ask("s")()).toBe("still there");
  expect(await ask("without volumes")()).toBe("gone");
  await pass(10_100);
  expect(await ask("s")()).toBe("waits");
});

test("says that a server is still there while Cinder may make its second attempt to end an attachment, each of which may take 75 s", async () => {
  const { left, ask, pass } = open();
  left.set("s", [A_VOLUME]);
  const deletedAtMs = 0;
  await pass(160_000);
  const answer = ask("s", deletedAtMs);
  expect(await answer()).toBe("waits");
  await pass(5_300);
  expect(await answer()).toBe("still there");
});

test("says that a server is gone that was deleted long ago, without a look at its volumes", async () => {
  const { clock, left, ask, looks } = open();
  left.set("s", [A_VOLUME]);
  clock.advance(200_000);
  expect(await ask("s", clock.now() - 180_001)()).toBe("gone");
  expect(await ask("s", null)()).toBe("gone");
  expect(looks()).toBe(0);
});

test("lets few callers wait at a time", async () => {
  const { left, ask } = open();
  left.set("s", [A_VOLUME]);
  const waiting = Array.from({ length: 16 }, () => ask("s"));
  expect(await Promise.all(waiting.map((answer) => answer()))).toEqual(Array(16).fill("waits"));
  expect(await ask("s")()).toBe("still there");
});

test("a database that fails is logged, and does not keep the answer", async () => {
  const { ask, errors } = open();
  expect(await ask("broken")()).toBe("gone");
  expect(errors).toHaveLength(1);
});
