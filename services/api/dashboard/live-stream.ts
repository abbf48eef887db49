import type { Clock, Timer } from "../../../runtime/clock.ts";
import type { LiveChange, LivePicture } from "./live-picture.ts";

/** Changes that are kept for watchers that come back, by number and by size. */
const KEPT_CHANGES = 600;
const KEPT_BYTES = 8 * 1024 * 1024;
/** A watcher with this much unsent data is disconnected. When it returns, it gets the picture of that moment. */
const UNSENT_BYTES_MAX = 8 * 1024 * 1024;
const WATCHERS_MAX = 64;
/**
 * A watcher is disconnected after this time. It reconnects with its token, so an expired or revoked token stops working.
 */
const WATCH_MS = 300_000;
/** How long the model continues after the last watcher has left, so that a watcher who returns soon misses nothing. */
const LINGER_MS = 15_000;
const HEARTBEAT_MS = 10_000;

/** The receiver of events: the response of an HTTP request. */
export interface LiveSink {
  readonly unsentBytes: number;
  send(text: string): void;
  /** Ends the response; the watcher is expected to come back. */
  drop(): void;
}

/** A model that reports changes from its creation to `stop`. */
export interface ToldModel {
  picture(): LivePicture;
  stop(): void;
}

export interface LiveStreamDeps {
  readonly clock: Clock;
  /** Distinguishes the numbers of this process's runs of the model. */
  readonly newEpoch: () => string;
  readonly openModel: (onChange: (change: LiveChange | "everything") => void) => ToldModel;
}

interface RunningModel {
  readonly epoch: string;
  readonly model: ToldModel;
  /** The number of the last change. */
  number: number;
  /** The events of the last changes, whose numbers end with `number`. */
  kept: string[];
  keptBytes: number;
}

/**
 * Sends the picture and its changes to every watcher, as server-sent events with ids.
 *
 * Two modes: **off**, without a model, and **on**, from the first watcher until LINGER_MS after the last one has gone. A watcher that names
 * the last id it got is sent the changes since, if they are still kept; otherwise it is sent the whole picture. Nothing is buffered for a
 * slow watcher but what its connection holds: beyond UNSENT_BYTES_MAX it is dropped.
 */
export class LiveStream {
  readonly #deps: LiveStreamDeps;
  /** The watchers, each with the monotonic time at which it began to watch. */
  readonly #sinks = new Map<LiveSink, number>();
  #running: RunningModel | null = null;
  #lingering: Timer | null = null;
  #heartbeat: Timer | null = null;
  #closed = false;

  constructor(deps: LiveStreamDeps) {
    this.#deps = deps;
  }

  get watchers(): number {
    return this.#sinks.size;
  }

  /** Adds a watcher. Returns the function that takes it away, or null when there are too many, or the stream is closed. */
  watch(sink: LiveSink, lastId: string | null): (() => void) | null {
    if (this.#closed || this.#sinks.size >= WATCHERS_MAX) return null;
    const running = this.#open();
    this.#sinks.set(sink, this.#deps.clock.monotonic());
    const missed = missedBy(running, lastId);
    this.#send(sink, missed === null ? snapshotOf(running) : `:\n\n${missed.join("")}`);
    return () => this.#leave(sink);
  }

  /** The present picture, for a caller that does not watch. Starts the model for a while if it is not running. */
  picture(): LivePicture {
    const { model } = this.#open();
    if (this.#sinks.size === 0) this.#linger();
    return model.picture();
  }

  /** Drops every watcher and takes no more. Repeatable. */
  close(): void {
    this.#closed = true;
    for (const sink of [...this.#sinks.keys()]) sink.drop();
    this.#sinks.clear();
    this.#stop();
  }

  #open(): RunningModel {
    this.#lingering?.cancel();
    this.#lingering = null;
    if (this.#running !== null) return this.#running;
    const running: RunningModel = {
      epoch: this.#deps.newEpoch(),
      model: this.#deps.openModel((change) => this.#tell(change)),
      ...{ number: 0, kept: [], keptBytes: 0 },
    };
    this.#running = running;
    this.#beat();
    return running;
  }

  #tell(change: LiveChange | "everything"): void {
    const running = this.#running;
    if (running === null) return;
    running.number += 1;
    if (change === "everything") {
      running.kept = [];
      running.keptBytes = 0;
      const snapshot = snapshotOf(running);
      for (const sink of [...this.#sinks.keys()]) this.#send(sink, snapshot);
      return;
    }
    const event = eventOf(running, "change", JSON.stringify(change));
    running.kept.push(event);
    running.keptBytes += event.length;
    while (running.kept.length > KEPT_CHANGES || running.keptBytes > KEPT_BYTES)
      running.keptBytes -= running.kept.shift()?.length ?? 0;
    for (const sink of [...this.#sinks.keys()]) this.#send(sink, event);
  }

  /** Sends a comment, so that proxies and browsers see a living connection, and disconnects the watchers that must come back. */
  #beat(): void {
    const { clock } = this.#deps;
    this.#heartbeat = clock.setTimer(HEARTBEAT_MS, () => {
      for (const [sink, sinceMs] of [...this.#sinks]) {
        if (clock.monotonic() - sinceMs >= WATCH_MS) this.#drop(sink);
        else this.#send(sink, ":\n\n");
      }
      this.#beat();
    });
  }

  #send(sink: LiveSink, text: string): void {
    if (sink.unsentBytes > UNSENT_BYTES_MAX) this.#drop(sink);
    else sink.send(text);
  }

  #drop(sink: LiveSink): void {
    this.#leave(sink);
    sink.drop();
  }

  #leave(sink: LiveSink): void {
    if (this.#sinks.delete(sink) && this.#sinks.size === 0 && !this.#closed) this.#linger();
  }

  #linger(): void {
    this.#lingering?.cancel();
    this.#lingering = this.#deps.clock.setTimer(LINGER_MS, () => this.#stop());
  }

  #stop(): void {
    this.#lingering?.cancel();
    this.#heartbeat?.cancel();
    this.#lingering = null;
    this.#heartbeat = null;
    this.#running?.model.stop();
    this.#running = null;
  }
}

function snapshotOf(running: RunningModel): string {
  return eventOf(running, "picture", JSON.stringify(running.model.picture()));
}

function eventOf({ epoch, number }: RunningModel, name: string, data: string): string {
  return `id: ${epoch}-${number}\nevent: ${name}\ndata: ${data}\n\n`;
}

/** The events after this id. Null when they are no longer known, or the id belongs to another run. */
function missedBy({ epoch, number, kept }: RunningModel, lastId: string | null): readonly string[] | null {
  const [, of, at] = /^([\w]+)-(\d{1,15})$/.exec(lastId ?? "") ?? [];
  if (of !== epoch || at === undefined) return null;
  const missed = number - Number(at);
  return missed < 0 || missed > kept.length ? null : missed === 0 ? [] : kept.slice(-missed);
}
