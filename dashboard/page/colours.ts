import { signal } from "@preact/signals";
import type { MapColours } from "./draw-hosts.ts";

/** The colours of canvases, as the style sheet has them for the present colour scheme. */
export const colours = signal(read());

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  colours.value = read();
});

function read(): MapColours {
  const style = getComputedStyle(document.documentElement);
  const of = (name: string) => style.getPropertyValue(name).trim();
  return {
    ramp: [0, 1, 2, 3, 4, 5].map((step) => of(`--heat-${step}`)),
    ...{ down: of("--down"), bad: of("--bad"), warn: of("--warn"), text: of("--text"), busy: of("--busy") },
    card: of("--card"),
  };
}
