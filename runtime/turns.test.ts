import { expect, test } from "vitest";
import { Turns } from "./turns.ts";

test("work on a shared key runs one after the other, also after a failure, and other work does not wait", async () => {
  const turns = new Turns<string>();
  const done: string[] = [];
  let open = (): void => {};
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  const work = (name: string, wait: Promise<void> | null) => async () => {
    await wait;
    done.push(name);
    if (name === "fails") throw new Error(name);
    return name;
  };
  const first = turns.take(["a", "b"], work("first", gate));
  const failing = turns.take(["b"], work("fails", null));
  const last = turns.take(["b", "c"], work("last", null));
  await turns.take(["d"], work("other", null));
  expect(done).toEqual(["other"]);
  open();
  await expect(failing).rejects.toThrow("fails");
  expect(await Promise.all([first, last])).toEqual(["first", "last"]);
  expect(done).toEqual(["other", "first", "fails", "last"]);
  expect(turns.size).toBe(0);
});
