import { spawn } from "node:child_process";
import { once } from "node:events";

/** How often npm is started before the installation counts as failed. */
const TRIES = 3;
/** A try that lasts longer has stalled: an installation takes half a minute where the registry answers. */
const TRY_SECONDS_MAX = 120;
/**
 * By itself npm waits five minutes for a registry that accepted a connection and answers nothing. Environment variables carry these settings
 * into the npm that the install script of the `node` package starts.
 */
const IMPATIENCE = {
  npm_config_fetch_timeout: "20000",
  npm_config_fetch_retries: "4",
  npm_config_fetch_retry_mintimeout: "1000",
  npm_config_fetch_retry_maxtimeout: "5000",
};
/** The longest time that {@link installPackage} takes, in milliseconds. */
export const INSTALL_MS_MAX = TRIES * TRY_SECONDS_MAX * 1000;

/**
 * Installs the tarball `file` globally below the directory `prefix`, as a user would. A registry that stalls is asked again.
 * @throws Error with what npm printed, when no try succeeded
 */
export async function installPackage(file: string, prefix: string, environment: NodeJS.ProcessEnv): Promise<void> {
  const words = ["install", "--global", "--prefix", prefix, "--prefer-offline", "--no-audit", "--no-fund", file];
  const reasons: string[] = [];
  while (reasons.length < TRIES) {
    const reason = await tryNpm(words, { ...environment, ...IMPATIENCE });
    if (reason === undefined) return;
    reasons.push(reason);
  }
  throw new Error(`npm could not install ${file} in ${TRIES} tries:\n${reasons.join("\n")}`);
}

/** Runs npm once, in a process group of its own, so that no child of a stalled npm is left. Returns why it failed. */
async function tryNpm(words: readonly string[], env: NodeJS.ProcessEnv): Promise<string | undefined> {
  const npm = spawn("npm", words, { env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  let printed = "";
  for (const stream of [npm.stdout, npm.stderr]) {
    stream.on("data", (text: Buffer) => {
      printed = `${printed}${text}`.slice(-4000);
    });
  }
  let stalled = false;
  const watch = setTimeout(() => {
    stalled = true;
    if (npm.pid !== undefined) process.kill(-npm.pid, "SIGKILL");
  }, TRY_SECONDS_MAX * 1000);
  const [code] = await once(npm, "close").finally(() => clearTimeout(watch));
  if (code === 0) return undefined;
  return `${stalled ? `npm was stopped after ${TRY_SECONDS_MAX} s` : `npm ended with code ${code}`}: ${printed}`;
}
