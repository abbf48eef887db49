import { describe, expect, test } from "vitest";
import { ManualClock } from "../../../runtime/manual-clock.ts";
import type { LiveChange, LivePicture } from "./live-picture.ts";
import { LiveStream } from "./live-stream.ts";

const FIGURES = {
  ...{ at: 0, busy: 0, waiting: 0, oldestWaitingAt: null, cellCounts: [], schedulers: [], laws: null, faults: null },
  counts: { placed: 0, hops: 0, active: 0, failed: 0, deleted: 0 },
};
const PICTURE: LivePicture = { classes: ["VCPU"], cells: [], hosts: [], paths: [], figures: FIGURES, history: [] };

class Sink {
  unsentBytes = 0;
  dropped = false;
  events: string[] = [];
  send(text: string): void {
    this.events.push(...text.split("\n\n").filter((event) => event !== "" && event !== ":"));
  }
  drop(): void {
    this.dropped = true;
  }
  get ids(): string[] {
    return this.events.map((event) => /^id: (.*)$/m.exec(event)?.[1] ?? "");
  }
  get kinds(): string[] {
    return this.events.map((event) => /^event: (.*)$/m.exec(event)?.[1] ?? "");
  }
}

function open() {
  const clock = new ManualClock();
  const models: { running: boolean; tell: (change: LiveChange | "everything") => void }[] = [];
  const stream = new LiveStream({
    clock,
    newEpoch: () => `e${models.length}`,
    openModel: (onChange) => {
      const model = { running: true, tell: onChange };
      models.push(model);
      return {
        picture: () => PICTURE,
        stop: () => {
          model.running = false;
        },
      };
    },
  });
  return { clock, stream, models, tell: (change: LiveChange | "everything") => models.at(-1)?.tell(change) };
}

describe("the stream of the dashboard", () => {
  test("has no model until somebody watches, and none some time after the last has gone", () => {
    const { clock, stream, models } = open();
    expect(models).toEqual([]);
    const leave = stream.watch(new Sink(), null);
    stream.watch(new Sink(), null)?.();
    expect(models.map(({ running }) => running)).toEqual([true]);
    leave?.();
    expect(models[0]?.running).toBe(true);
    clock.advance(60_000);
    expect(models[0]?.running).toBe(false);
    stream.watch(new Sink(), null);
    expect(models).toHaveLength(2);
  });

  test("sends the picture first, and then each change with its number", () => {
    const { stream, tell } = open();
    const sink = new Sink();
    stream.watch(sink, null);
    tell({ figures: FIGURES });
    tell({ gonePaths: ["x"] });
    expect(sink.kinds).toEqual(["picture", "change", "change"]);
    expect(sink.ids).toEqual(["e0-0", "e0-1", "e0-2"]);
  });

  test("a client that reconnects gets the missed changes, or the whole picture if there were too many or the run is another one", () => {
    const { stream, tell } = open();
    stream.watch(new Sink(), null);
    for (let index = 0; index < 700; index += 1) tell({ gonePaths: [String(index)] });
    const back = (id: string) => {
      const sink = new Sink();
      stream.watch(sink, id);
      return sink;
    };
    expect(back("e0-697").ids).toEqual(["e0-698", "e0-699", "e0-700"]);
    expect(back("e0-700").ids).toEqual([]);
    for (const id of ["e0-3", "e9-697", "e0-701", "nonsense"]) expect(back(id).kinds).toEqual(["picture"]);
    tell("everything");
    expect(back("e0-699").kinds).toEqual(["picture"]);
  });

  test("the kept changes are also limited by their size", () => {
    const { stream, tell } = open();
    stream.watch(new Sink(), null);
    for (let index = 0; index < 20; index += 1) tell({ gonePaths: ["x".repeat(1024 * 1024)] });
    const sink = new Sink();
    stream.watch(sink, "e0-5");
    expect(sink.kinds).toEqual(["picture"]);
  });

  test("a slow watcher is dropped, and the others continue", () => {
    const { stream, tell } = open();
    const [slow, quick] = [new Sink(), new Sink()];
    for (const sink of [slow, quick]) stream.watch(sink, null);
    slow.unsentBytes = 64 * 1024 * 1024;
    tell({ gonePaths: ["x"] });
    tell({ gonePaths: ["y"] });
    expect([slow.dropped, slow.events.length]).toEqual([true, 1]);
    expect([quick.dropped, quick.events.length]).toEqual([false, 3]);
    expect(stream.watchers).toBe(1);
  });

  test("disconnects a watcher after five minutes, so that its token is checked again, and it misses nothing", () => {
    const { clock, stream, tell } = open();
    const [first, second] = [new Sink(), new Sink()];
    stream.watch(first, null);
    clock.advance(200_000);
    stream.watch(second, null);
    clock.advance(99_000);
    expect(first.dropped).toBe(false);
    clock.advance(11_000);
    expect([first.dropped, second.dropped, stream.watchers]).toEqual([true, false, 1]);
    tell({ gonePaths: ["x"] });
    stream.watch(first, "e0-0");
    expect(first.ids).toEqual(["e0-0", "e0-1"]);
  });

  test("takes a bounded number of watchers, and none once it is closed", () => {
    const { stream } = open();
    const sinks = Array.from({ length: 65 }, () => new Sink());
    const watches = sinks.map((sink) => stream.watch(sink, null));
    expect(watches.filter((leave) => leave === null)).toHaveLength(1);
    stream.close();
    expect(sinks.filter(({ dropped }) => dropped)).toHaveLength(64);
    expect(stream.watch(new Sink(), null)).toBeNull();
  });
});
