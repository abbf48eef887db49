import { execFile } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";

const BERTH = join(import.meta.dirname, "../../bin/berth");

/** No process listens there, since a refused command never connects. */
const ELSEWHERE = {
  BERTH_DATABASE_URL: "postgres://berth@127.0.0.1:1/api",
  BERTH_CELL_DATABASE_URL: "postgres://berth@127.0.0.1:1/cell",
  BERTH_NATS_URL: "nats://127.0.0.1:1",
  BERTH_CELL: "cell-1",
};

function berth(
  argv: readonly string[],
): Promise<{ readonly code: unknown; readonly out: string; readonly err: string }> {
  return new Promise((resolve) => {
    const env = { PATH: process.env.PATH, HOME: process.env.HOME, ...ELSEWHERE };
    const limits = { env, timeout: 60_000, killSignal: "SIGKILL" } as const;
    execFile(BERTH, [...argv], limits, (error, out, err) => resolve({ code: error?.code ?? 0, out, err }));
  });
}

test.each([
  ["api --listen 0.0.0.0:0", "BERTH_AUTH (--auth) is none", "--allow-unauthenticated-network"],
  ["api --listen :0 --auth noauth2", "BERTH_AUTH (--auth) is noauth2", "--allow-unauthenticated-network"],
  ["api --only placement --listen [::]:0", "[::]:0 and BERTH_AUTH (--auth) is none", "--allow-unauthenticated-network"],
  ["conductor --listen 0.0.0.0:0", "there is no TLS", "--plain-text"],
])(
  "berth %s accepts no unauthenticated requests from other machines: one line of advice, and exit code 2",
  async (words, why, allow) => {
    const { code, out, err } = await berth(words.split(" "));
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err.trimEnd().split("\n")).toHaveLength(1);
    expect(err).toMatch(/^berth (api|conductor).*: BERTH_LISTEN \(--listen\) is/);
    expect(err).toContain(why);
    expect(err).toContain(allow);
  },
);
