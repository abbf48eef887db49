import { boolean, integer } from "../../runtime/setting-kinds.ts";
import { setting } from "../../runtime/settings.ts";
import type { LiveCounts, LivePicture } from "../../services/api/dashboard/live-picture.ts";
import {
  applyLiveChange,
  type HeldPicture,
  holdPicture,
  readLiveEvents,
} from "../../services/api/dashboard/read-live-events.ts";
import { runCommand } from "../run-command.ts";
import { apiAddress } from "./api-address.ts";
import { callOperatorsApi, OperatorsApiError, operatorSettings, streamOperatorsApi } from "./operators-client.ts";
import { topText } from "./print-top.ts";
import { requireDashboard } from "./require-dashboard.ts";
import { TopScreen } from "./top-screen.ts";

const declaration = {
  command: "berth top",
  about: "Shows the cloud while it works, like the dashboard: cells, the newest requests, rates. Ctrl-C ends it.",
  settings: {
    ...operatorSettings,
    once: setting(boolean, {
      about: "print the figures once and end; this is the default if the output is not a terminal",
      default: "false",
    }),
    requests: setting(integer({ min: 0, max: 300 }), {
      about: "number of the newest requests that are shown",
      default: "20",
    }),
  },
};

const REDRAW_MS = 500;
const RETRY_MS = 1_000;
/** How often, and how many times, a single picture is read until it knows everything. */
const SETTLE_MS = 500;
const SETTLE_TRIES_MAX = 8;
const WIDTH_ELSEWHERE = 200;
const HOME_AND_CLEAR = "\u001b[H\u001b[J";

/** `berth top`: needs an api that serves the dashboard. */
export function runTopCommand(argv: readonly string[]): Promise<number> {
  return runCommand(declaration, argv, async (settings) => {
    await requireDashboard(apiAddress(settings), "data");
    const { stdout } = process;
    const show = (held: HeldPicture, rates: LiveCounts | null): string =>
      topText(held, {
        nowMs: Date.now(),
        rates,
        pathsMax: settings.requests,
        width: stdout.columns ?? WIDTH_ELSEWHERE,
      });
    if (settings.once || !stdout.isTTY) {
      const picture = await settledPicture(settings);
      stdout.write(show(holdPicture(picture), null));
      return 0;
    }
    const screen = new TopScreen((held, rates) => stdout.write(`${HOME_AND_CLEAR}${show(held, rates)}`));
    const timer = setInterval(() => screen.tick(performance.now()), REDRAW_MS);
    const ending = new AbortController();
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => ending.abort());
    try {
      await follow(settings, screen, ending.signal);
    } finally {
      clearInterval(timer);
    }
    return 0;
  });
}

/**
 * Reads the picture once. An api asks its cells about conductors and the schedulers about their figures only while somebody watches, so the first
 * picture may know nothing of them. Then it is read again, for a few seconds.
 */
async function settledPicture(settings: Parameters<typeof callOperatorsApi>[0]): Promise<LivePicture> {
  for (let tries = 1; ; tries += 1) {
    const picture = await callOperatorsApi<LivePicture>(settings, "GET", "/live/picture");
    const isSettled =
      picture.figures.schedulers.some(({ placed }) => placed !== null) &&
      picture.cells.every(({ answers, conductors }) => !answers || conductors.length > 0);
    if (isSettled || tries === SETTLE_TRIES_MAX) return picture;
    await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
  }
}

/** Follows the api until it is told to end. A lost connection is opened again; a refusal is not. */
async function follow(
  settings: Parameters<typeof streamOperatorsApi>[0],
  screen: TopScreen,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    try {
      for await (const event of readLiveEvents(await streamOperatorsApi(settings, "/live", signal))) {
        if (event.kind === "picture") screen.held = holdPicture(event.picture);
        else if (screen.held !== null) screen.held = applyLiveChange(screen.held, event.change);
      }
    } catch (error) {
      if (error instanceof OperatorsApiError && (error.code !== "unreachable" || screen.held === null)) {
        if (!signal.aborted) throw error;
      }
    }
    if (!signal.aborted) await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}
