import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";

const CHROMIUM = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
const ARGUMENTS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Whether a Chromium is installed. */
export const hasChromium = CHROMIUM !== undefined;

/** Where the screenshots of tests go; they are artefacts, and nothing compares them. */
export const SHOTS = process.env["BERTH_SCREENSHOTS"] ?? "coverage/screenshots";

/** Starts the installed Chromium without a window. Throws when there is none. */
export function launchChromium(): Promise<Browser> {
  if (CHROMIUM === undefined) throw new Error("no Chromium is installed (Debian: apt-get install chromium)");
  return chromium.launch({ executablePath: CHROMIUM, args: ARGUMENTS });
}
