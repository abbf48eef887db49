import { MINOR_MAX } from "../../../services/api/http/microversion.ts";
import { CLOUD_SCRIPTS } from "./cloud-scripts.ts";
import { exceptionOf, PROXIES, REMOVED } from "./exceptions.ts";
import { NEUTRON_SCRIPTS } from "./neutron-scripts.ts";
import { PROJECT_SCRIPTS } from "./project-scripts.ts";
import type { SampleCloud } from "./sample-cloud.ts";
import type { Sample, SampleLibrary } from "./sample-library.ts";
import { SampleRun, type Script } from "./sample-run.ts";
import { SERVER_PART_SCRIPTS } from "./server-part-scripts.ts";
import { SERVER_SCRIPTS } from "./server-scripts.ts";
import { VOLUME_SCRIPTS } from "./volume-scripts.ts";

const SCRIPTS: Readonly<Record<string, Script>> = {
  ...SERVER_SCRIPTS,
  ...SERVER_PART_SCRIPTS,
  ...CLOUD_SCRIPTS,
  ...PROJECT_SCRIPTS,
  ...VOLUME_SCRIPTS,
};

export interface Verdict {
  readonly sample: Sample;
  /** `gone`: an API that Nova has removed, and that answers 410 here, too. */
  readonly kind: "passed" | "failed" | "exception" | "proxy" | "gone";
  /** The fault or the reason; null for what passed. */
  readonly note: string | null;
}

/** The clouds that the samples are sent to. */
export interface SampleClouds {
  /** Has Berth's own network. */
  readonly cloud: SampleCloud;
  readonly withNeutron: SampleCloud;
}

/** Runs each folder's scripts at each microversion that has samples of it, and judges every sample of the library. */
export async function runSamples(
  { cloud, withNeutron }: SampleClouds,
  library: SampleLibrary,
  only: string | null,
): Promise<readonly Verdict[]> {
  const folders = [...new Set(library.all.map(({ folder }) => folder))].filter(
    (folder) => only === null || folder === only,
  );
  const verdicts: Verdict[] = [];
  for (const folder of folders.sort()) {
    const samples = library.all.filter((sample) => sample.folder === folder);
    const removed = REMOVED[folder];
    if (removed !== undefined) {
      verdicts.push(...(await judgeRemoved(cloud, samples, removed)));
      continue;
    }
    for (const minor of [...new Set(samples.map((sample) => sample.minor))].sort((a, b) => a - b)) {
      const here = samples.filter((sample) => sample.minor === minor);
      const run = new SampleRun({ cloud, library, folder, minor });
      const there = new SampleRun({ cloud: withNeutron, library, folder, minor }, run.outcomes);
      const fault = minor > MINOR_MAX ? null : await attemptAll(folder, run, there);
      verdicts.push(...here.map((sample) => judge(sample, { run, fault, reason: exceptionOf(sample) })));
    }
  }
  return verdicts;
}

/** Runs the folder's script in each cloud that it has one for. Returns why they could not go on, or null. */
async function attemptAll(folder: string, run: SampleRun, withNeutron: SampleRun): Promise<string | null> {
  const [script, there] = [SCRIPTS[folder], NEUTRON_SCRIPTS[folder]];
  if (script === undefined && there === undefined) return "no script sends it";
  const faults = [script && (await attempt(run, script)), there && (await attempt(withNeutron, there))];
  return faults.filter(Boolean).join("; ") || null;
}

/** Runs a script and removes its servers. Returns why it could not go on, or null. */
async function attempt(run: SampleRun, script: Script): Promise<string | null> {
  try {
    await script(run);
    return null;
  } catch (error) {
    return `the script stopped: ${error instanceof Error ? error.message : error}`;
  } finally {
    await run.cloud.deleteServers();
  }
}

function judge(
  sample: Sample,
  { run, fault, reason }: { readonly run: SampleRun; readonly fault: string | null; readonly reason: string | null },
): Verdict {
  const outcome = run.outcomes.get(sample.name);
  if (PROXIES.has(sample.folder))
    return { sample, kind: "proxy", note: outcome === null ? "passed" : (outcome ?? fault) };
  if (outcome === null) return { sample, kind: "passed", note: null };
  if (reason !== null) return { sample, kind: "exception", note: `${reason} (${outcome ?? fault ?? "not sent"})` };
  return { sample, kind: "failed", note: outcome ?? fault ?? "no script sends it" };
}

async function judgeRemoved(cloud: SampleCloud, samples: readonly Sample[], path: string): Promise<readonly Verdict[]> {
  const { status } = await cloud.call("GET", path, { minor: 1 });
  const isGone = status === 410;
  return samples.map((sample) => ({
    ...{ sample, kind: isGone ? "gone" : "failed" },
    note: isGone ? "Nova has removed it at every microversion" : `GET ${path}: ${status} instead of 410`,
  }));
}
