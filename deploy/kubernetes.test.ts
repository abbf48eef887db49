import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pino } from "pino";
import { Registry } from "prom-client";
import { afterAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { auditDeclaration } from "../cli/audit.ts";
import { commands } from "../cli/commands.ts";
import { systemClock } from "../runtime/clock.ts";
import { readSettings } from "../runtime/settings.ts";
import { refuseOpenNetwork } from "../services/api/identity/open-network.ts";
import { apiDeclaration } from "../services/api/settings.ts";
import { agentDeclaration } from "../services/compute-agent/settings.ts";
import { conductorDeclaration } from "../services/conductor/settings.ts";
import { consoleProxyDeclaration } from "../services/console-proxy/settings.ts";
import { SchedulerEvents } from "../services/scheduler/events.ts";
import { schedulerDeclaration } from "../services/scheduler/settings.ts";
import { type Manifest, manifestsOf, readManifests } from "./kubernetes-files.ts";
import { secretFiles } from "./secret-files.ts";

interface Source {
  readonly secretKeyRef?: { readonly name: string; readonly key: string };
}
interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string | number };
}
interface Container {
  readonly name: string;
  readonly args?: readonly string[];
  readonly env: readonly { readonly name: string; readonly value?: string; readonly valueFrom?: Source }[];
  readonly ports?: readonly { readonly name: string; readonly containerPort: number }[];
  readonly securityContext: object;
  readonly startupProbe?: Probe;
  readonly readinessProbe?: Probe;
  readonly livenessProbe?: Probe;
  readonly resources: { readonly limits: { readonly memory: string } };
}
interface Peer {
  readonly namespaceSelector?: { readonly matchLabels: Readonly<Record<string, string>> };
}
interface Rule {
  readonly from?: readonly Peer[];
  readonly to?: readonly Peer[];
  readonly ports?: readonly { readonly port: number }[];
}
interface PodSpec {
  readonly containers: readonly Container[];
  readonly securityContext: object;
  readonly automountServiceAccountToken: boolean;
  readonly terminationGracePeriodSeconds?: number;
}

const ROOT = join(import.meta.dirname, "..");
const GRACE_SECONDS = 10;
const SETTINGS = {
  api: apiDeclaration.settings,
  scheduler: schedulerDeclaration.settings,
  conductor: conductorDeclaration.settings,
  "compute-agent": agentDeclaration.settings,
  audit: auditDeclaration.settings,
  "console-proxy": consoleProxyDeclaration.settings,
} as const;
type ServiceName = keyof typeof SETTINGS;

const manifests = readManifests();
const workloads = manifests
  .filter(({ kind }) => ["Deployment", "StatefulSet", "Job"].includes(kind))
  .map((manifest) => {
    const { spec } = manifest.content as {
      readonly spec: { readonly template: { readonly spec: PodSpec; readonly metadata: { readonly labels: object } } };
    };
    return { ...manifest, pod: spec.template.spec, labels: spec.template.metadata.labels };
  });
const services = workloads.flatMap(({ pod, labels }) =>
  pod.containers
    .filter(({ args }) => args !== undefined)
    .map((container) => ({ container, pod, labels, service: serviceOf(container) })),
);

function serviceOf({ args }: Container): ServiceName {
  const [name = ""] = args ?? [];
  expect(commands.map((command) => command.name)).toContain(name);
  return name as ServiceName;
}

/** The names that `readSettings` uses. */
function environmentNames(service: ServiceName): readonly string[] {
  return Object.keys(SETTINGS[service]).map(
    (key) => `BERTH_${key.replaceAll(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`,
  );
}

/** The path of a kind's published schema in `kubernetes-models`. */
function modelOf({ apiVersion }: Manifest): string {
  return `kubernetes-models/${apiVersion}`;
}

async function shortfallsOf(manifest: Manifest): Promise<string | null> {
  const models = (await import(modelOf(manifest))) as Record<string, new (data: unknown) => { validate(): void }>;
  const Model = models[manifest.kind];
  if (Model === undefined) return `${manifest.apiVersion} knows no ${manifest.kind}`;
  try {
    new Model(manifest.content).validate();
    return null;
  } catch (error) {
    return `${manifest.file} ${manifest.kind} ${manifest.name}: ${(error as Error).message}`;
  }
}

describe("the published schemas", () => {
  // Modules are resolved from this directory.
  const scratch = join(ROOT, "node_modules/.cache/berth-kubernetes");
  afterAll(() => rmSync(scratch, { recursive: true, force: true }));

  test("accept every resource", async () => {
    const found = await Promise.all(manifests.map(shortfallsOf));
    expect(found.filter((one) => one !== null)).toEqual([]);
    expect(manifests.length).toBeGreaterThan(20);
  });

  test("reject a wrong resource with the reason", async () => {
    const [deployment] = manifests.filter(({ kind }) => kind === "Deployment");
    if (deployment === undefined) throw new Error("no deployment");
    const broken = { ...deployment, content: { ...deployment.content, spec: { replicas: "two" } } };
    expect(await shortfallsOf(broken)).toMatch(/selector|replicas/);
  });

  test("know every field that is used", () => {
    const text = manifests.map(
      (manifest, index) =>
        `import type { I${manifest.kind} as K${index} } from "${modelOf(manifest)}";\nexport const m${index}: K${index} = ${JSON.stringify(manifest.content)};`,
    );
    rmSync(scratch, { recursive: true, force: true });
    mkdirSync(scratch, { recursive: true });
    writeFileSync(join(scratch, "manifests.ts"), text.join("\n"));
    const options = ["--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext", "--ignoreConfig", "--types", ""];
    const tsc = spawnSync(join(ROOT, "node_modules/.bin/tsc"), [...options, "manifests.ts"], {
      cwd: scratch,
      encoding: "utf8",
    });
    expect(tsc.stdout).toBe("");
    expect(tsc.status).toBe(0);
  });

  const hasKubectl = spawnSync("kubectl", ["version", "--client"], { stdio: "ignore" }).status === 0;
  test.skipIf(!hasKubectl).each(["base", "cells/cell1"])("accept the output of kustomize for %s", async (overlay) => {
    const dir = join(import.meta.dirname, "kubernetes", overlay);
    const made = manifestsOf(dir, execFileSync("kubectl", ["kustomize", dir], { encoding: "utf8" }));
    const found = await Promise.all(made.map(shortfallsOf));
    expect(found.filter((one) => one !== null)).toEqual([]);
    const text = JSON.stringify(made.map(({ content }) => content));
    expect(text).not.toContain('"image":"berth"');
    expect(made.filter(({ content }) => !JSON.stringify(content).includes("berth"))).toEqual([]);
  });
});

describe("each service", () => {
  test("exists", () => {
    expect(services.map(({ service }) => service).toSorted()).toEqual(Object.keys(SETTINGS).toSorted());
  });

  test.each(services)("gets only settings that it has: $service", ({ container, service }) => {
    const names = container.env.map(({ name }) => name).filter((name) => name !== "POD_NAME");
    expect(names.filter((name) => !environmentNames(service).includes(name))).toEqual([]);
  });

  // The audit listens nowhere: it ends when it cannot continue, and its findings expire by themselves when it hangs.
  test.each(services.filter(({ service }) => service !== "audit"))(
    "is probed at the address where it answers: $service",
    ({ container, service }) => {
      const listen =
        container.env.find(({ name }) => service !== "api" && name === "BERTH_METRICS_LISTEN") ??
        container.env.find(({ name }) => name === "BERTH_LISTEN");
      const ports = new Map(container.ports?.map(({ name, containerPort }) => [name, `:${containerPort}`]));
      const probes = [container.startupProbe, container.readinessProbe, container.livenessProbe].map(
        (probe) => probe?.httpGet,
      );
      expect(probes.map((get) => get?.path)).toEqual(["/readyz", "/readyz", "/healthz"]);
      expect(probes.map((get) => ports.get(`${get?.port}`))).toEqual([listen?.value, listen?.value, listen?.value]);
    },
  );

  test.each(services)("has enough time to end: $service", ({ pod }) => {
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(GRACE_SECONDS);
  });

  test("gets its passwords from secrets that the command for secrets writes", () => {
    const files = secretFiles(["cell1"], (what) => what.replaceAll(" ", "-"));
    const written: Readonly<Record<string, string | undefined>> = {
      "berth-above": files["above.env"],
      "berth-conductor": files["cell1-conductor.env"],
    };
    const references = services.flatMap(({ container }) =>
      container.env.flatMap(({ valueFrom }) => valueFrom?.secretKeyRef ?? []),
    );
    expect(references.length).toBeGreaterThan(5);
    // Keystone belongs to the operator, so no command writes that secret.
    const unwritten = references.filter(({ name, key }) => !written[name]?.includes(`${key}=`));
    expect(unwritten.filter(({ name }) => name !== "berth-keystone")).toEqual([]);
    expect(JSON.stringify(manifests.map(({ content }) => content))).not.toMatch(/:\/\/[^"]*:[^"]*@/);
  });
});

describe("the authentication of callers", () => {
  const [api] = services.filter(({ service }) => service === "api");
  const given = new Map(api?.container.env.map((one) => [one.name, one]));

  test("uses Keystone, and nothing starts before the operator has configured it", () => {
    expect(given.get("BERTH_AUTH")?.value).toBe("keystone");
    for (const name of ["BERTH_KEYSTONE_URL", "BERTH_KEYSTONE_PASSWORD"]) {
      expect(given.get(name)?.valueFrom?.secretKeyRef).toEqual({ name: "berth-keystone", key: name });
    }
    const all = services.flatMap(({ container }) => container.env.map(({ name }) => name));
    expect(all.filter((name) => /UNAUTHENTICATED|PLAIN_TEXT|CELL_WIDE/.test(name))).toEqual([]);
  });

  test("is required by the api itself when the setting is removed", () => {
    const env = Object.fromEntries(
      [...given.values()].map(({ name, value }) => [name, name.endsWith("NATS_URL") ? "nats://x" : value]),
    );
    const urls = { BERTH_DATABASE_URL: "postgres://x/y", BERTH_AUTH: "none" };
    const read = readSettings(apiDeclaration, { argv: [], env: { ...env, ...urls } });
    if (read.kind !== "settings") throw new Error("no settings");
    expect(() => refuseOpenNetwork(read.settings)).toThrow("--allow-unauthenticated-network");
  });

  test("no policy admits everybody: each rule names a source or a destination", () => {
    const policies = manifests.filter(({ kind, name }) => kind === "NetworkPolicy" && name !== "nothing-else");
    const open = policies.flatMap(({ file, name, content }) => {
      const { ingress = [], egress = [] } = content.spec as {
        readonly ingress?: readonly Rule[];
        readonly egress?: readonly Rule[];
      };
      const unnamed = [...ingress.map(({ from = [] }) => from), ...egress.map(({ to = [] }) => to)];
      return unnamed.some((peers) => peers.length === 0) ? [`${file} ${name}`] : [];
    });
    expect(open).toEqual([]);
    expect(policies.length).toBeGreaterThan(8);
  });

  test("metrics are open only to monitoring, on a port that no client reaches", () => {
    expect(given.get("BERTH_METRICS_LISTEN")?.value).toBe(":9100");
    expect(given.get("BERTH_LISTEN")?.value).toBe(":8774");
    const rules = manifests
      .filter(({ kind }) => kind === "NetworkPolicy")
      .flatMap(({ content }) => (content.spec as { readonly ingress?: readonly Rule[] }).ingress ?? [])
      .filter(({ ports = [] }) => ports.some(({ port }) => port === 9100));
    const from = rules.flatMap((rule) => rule.from ?? []).map((peer) => peer.namespaceSelector?.matchLabels);
    expect(from.length).toBe(3);
    expect(new Set(from.map((labels) => labels?.["kubernetes.io/metadata.name"]))).toEqual(new Set(["monitoring"]));
  });
});

test.each(workloads)(
  "$kind $name runs without privileges, can write only to its volumes, and has limits",
  ({ pod }) => {
    expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } });
    expect(pod.automountServiceAccountToken).toBe(false);
    for (const { securityContext, resources } of pod.containers) {
      expect(securityContext).toEqual({
        readOnlyRootFilesystem: true,
        allowPrivilegeEscalation: false,
        capabilities: { drop: ["ALL"] },
      });
      expect(resources.limits.memory).toMatch(/^\d+Mi$/);
    }
  },
);

describe("law 3", () => {
  const inCell = (file: string) => file.startsWith("cell");

  test("a process in a cell gets no address or secret of anything above it", () => {
    const given = workloads
      .filter(({ file }) => inCell(file))
      .flatMap(({ pod }) => pod.containers.flatMap(({ env }) => env));
    const names = given.map(({ name }) => name);
    expect(names).toContain("BERTH_CELL_DATABASE_URL");
    expect(names.filter((name) => ["BERTH_DATABASE_URL", "BERTH_REDIS_URL"].includes(name))).toEqual([]);
    const secrets = given.flatMap(({ valueFrom }) => valueFrom?.secretKeyRef?.name ?? []);
    expect(new Set(secrets)).toEqual(new Set(["berth-conductor"]));
  });

  test("connections between a cell and the API tier only go down, except from its NATS server to the hub", () => {
    const policies = manifests.filter(({ kind }) => kind === "NetworkPolicy");
    const across = policies.flatMap(({ file, name, content }) => {
      const { ingress = [], egress = [] } = content.spec as {
        readonly ingress?: readonly Rule[];
        readonly egress?: readonly Rule[];
      };
      const passes = (rules: readonly Rule[], way: "from" | "to") =>
        rules.flatMap((rule) =>
          (rule[way] ?? [])
            .flatMap((peer) => peer.namespaceSelector?.matchLabels["berth.cloud/tier"] ?? [])
            .map(
              (tier) =>
                `${inCell(file) ? "cell" : "above"} ${name}: ${way} ${tier} ${rule.ports?.map(({ port }) => port) ?? "any"}`,
            ),
        );
      return [...passes(ingress, "from"), ...passes(egress, "to")];
    });
    expect(across.toSorted()).toEqual([
      "above console-proxy: to cell 6084",
      "above down: to cell 5432,4222,6379",
      "above leaves: from cell 7422",
      "cell compute-agent: from above 6084",
      "cell leaf: to above 7422",
      "cell servers: from above any",
    ]);
  });

  test("the console proxy gets no address but that of the API database", () => {
    const [proxy] = services.filter(({ service }) => service === "console-proxy");
    expect(proxy?.container.env.flatMap(({ valueFrom }) => valueFrom?.secretKeyRef ?? [])).toEqual([
      { name: "berth-above", key: "BERTH_DATABASE_URL" },
    ]);
    expect(proxy?.labels).toEqual({ "app.kubernetes.io/name": "console-proxy" });
  });

  test.each(["base", "cell"])("connections that no rule of %s allows are forbidden", (folder) => {
    const closed = manifests.find(({ file, name }) => file.startsWith(`${folder}/`) && name === "nothing-else");
    expect(closed?.content.spec).toEqual({ podSelector: {}, policyTypes: ["Ingress", "Egress"] });
  });
});

test("schedulers are scaled by a metric that they export", () => {
  const registry = new Registry();
  new SchedulerEvents({
    logger: pino({ level: "silent" }),
    registry,
    clock: systemClock,
    claimsInFlight: () => 0,
    requestsInFlight: () => 0,
    rankings: { size: 0, memoryBytes: 0 },
  });
  const scaler = manifests.find(({ kind }) => kind === "HorizontalPodAutoscaler")?.content.spec as {
    readonly metrics: readonly { readonly pods: { readonly metric: { readonly name: string } } }[];
  };
  const [name = ""] = scaler.metrics.map(({ pods }) => pods.metric.name);
  expect(registry.getSingleMetric(name)).toBeDefined();
  const adapter = parse(readFileSync(join(import.meta.dirname, "kubernetes/prometheus-adapter.yaml"), "utf8")) as {
    readonly rules: { readonly custom: readonly { readonly seriesQuery: string; readonly metricsQuery: string }[] };
  };
  const [rule] = adapter.rules.custom;
  expect(rule?.seriesQuery).toContain(`${name}_count{`);
  expect(rule?.metricsQuery).toContain(`${name}_sum{`);
});
