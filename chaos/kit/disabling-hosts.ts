import { setTimeout as delay } from "node:timers/promises";
import { callApi } from "./call-api.ts";
import type { Nemesis, NemesisStage } from "./nemesis.ts";
import type { SuiteCloud } from "./suite.ts";

interface ComputeService {
  readonly id: string;
  readonly host: string;
  readonly status: string;
}

const ENABLE_TRIES = 20;
const RETRY_MS = 500;

/**
 * Disables a host at random, as an operator would, enables it again after `forMs`, and waits `pauseMs` until the next one. Existing servers
 * stay on the host, and no new ones are placed there. Works on any cloud, through its API.
 */
export function disablingHosts(times: { readonly forMs: number; readonly pauseMs: number }): Nemesis<SuiteCloud> {
  return async (stage) => {
    while (!stage.signal.aborted) {
      const service = await pickService(stage);
      if (service !== null) await disableFor(stage, service, times.forMs);
      await stage.pause(times.pauseMs);
    }
  };
}

/** Resolves with null when no host is enabled or the API does not answer. */
async function pickService({ cloud, random }: NemesisStage<SuiteCloud>): Promise<ComputeService | null> {
  const path = "/v2.1/os-services?binary=nova-compute";
  const answer = await callApi(`${apiOf(cloud)}${path}`, "GET").catch(() => null);
  if (answer?.status !== 200) return null;
  const { services } = answer.json as { readonly services: readonly ComputeService[] };
  const enabled = services.filter(({ status }) => status === "enabled");
  return enabled[Math.floor(random() * enabled.length)] ?? null;
}

async function disableFor(stage: NemesisStage<SuiteCloud>, { id, host }: ComputeService, forMs: number): Promise<void> {
  const url = `${apiOf(stage.cloud)}/v2.1/os-services/${id}`;
  await stage.fault({ fault: "own", target: `disabled ${host}` }, async () => {
    try {
      await callApi(url, "PUT", { status: "disabled", disabled_reason: "a suite" }).catch(() => null);
      await stage.pause(forMs);
    } finally {
      await enable(url, host);
    }
  });
}

/** Retries, because other nemeses may have taken the API down. */
async function enable(url: string, host: string): Promise<void> {
  for (let tries = 0; tries < ENABLE_TRIES; tries += 1) {
    const answer = await callApi(url, "PUT", { status: "enabled" }).catch(() => null);
    if (answer?.status === 200) return;
    await delay(RETRY_MS);
  }
  throw new Error(`host ${host} could not be enabled again`);
}

function apiOf({ apiUrls }: SuiteCloud): string {
  return apiUrls[0] ?? "";
}
