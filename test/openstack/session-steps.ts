/** A command of a session, with its expected result. */
export type Step =
  | {
      readonly kind: "command";
      /** `{name}` stands for what `keep` has stored. */
      readonly words: string;
      /** Whether it is run with a newer microversion of the Compute API than 2.1. */
      readonly newer: boolean;
      /** Null for a command that must succeed; otherwise a part of its message. */
      readonly fails: RegExp | null;
      readonly shows: RegExp | null;
      readonly keepAs: string | null;
    }
  /** Waits until the server has this status and nothing is under way. Null: until it is gone. */
  | { readonly kind: "settle"; readonly server: string; readonly status: string | null }
  /** Waits until the volume has this status. */
  | { readonly kind: "settle-volume"; readonly volume: string; readonly status: string };

const command = { kind: "command", newer: false, fails: null, shows: null, keepAs: null } as const;

/** Commands that succeed, one on each line. */
export const all = (lines: string): Step[] =>
  lines
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "")
    .map((words) => ({ ...command, words }));

export const ok = (words: string, shows: RegExp | null = null): Step => ({ ...command, words, shows });

/** The same commands with a newer microversion. */
export const newer = (words: string, shows: RegExp | null = null): Step => ({ ...command, words, shows, newer: true });

/** A command that fails as it should. */
export const no = (words: string, fails: RegExp): Step => ({ ...command, words, fails });

/** A command whose output is stored under a name. */
export const keep = (keepAs: string, words: string): Step => ({ ...command, words, keepAs });

export const settle = (server: string, status: string | null = "ACTIVE"): Step => ({ kind: "settle", server, status });

export const settleVolume = (volume: string, status: string): Step => ({ kind: "settle-volume", volume, status });
