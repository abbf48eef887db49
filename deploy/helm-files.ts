import { readFileSync } from "node:fs";
import { join } from "node:path";

const KUBERNETES = join(import.meta.dirname, "kubernetes");

/** The kustomize files from which each chart's templates are made. */
const SOURCES = {
  berth: [
    "base/prepare.yaml",
    "base/api.yaml",
    "base/scheduler.yaml",
    "base/audit.yaml",
    "base/console-proxy.yaml",
    "base/network-policies.yaml",
  ],
  "berth-cell": ["cell/conductor.yaml", "cell/compute-agent.yaml", "cell/network-policies.yaml"],
} as const;
export type ChartName = keyof typeof SOURCES;
export const CHARTS = Object.keys(SOURCES) as readonly ChartName[];

/** The keys of values.yaml are words in camel case, because templates read keys with a hyphen only by a function. */
const VALUES_KEYS: Readonly<Record<string, string>> = {
  "compute-agent": "computeAgent",
  "console-proxy": "consoleProxy",
};

const CELL_CONFIG = `apiVersion: v1
kind: ConfigMap
metadata:
  name: cell
  namespace: {{ .Release.Namespace }}
data:
  BERTH_CELL: {{ required "cell: the name of the cell" .Values.cell | quote }}
`;

/** A place of a resource that becomes a template. */
interface Edit {
  /** Describes the place in error messages. */
  readonly what: string;
  readonly place: RegExp;
  readonly template: (values: string) => string;
}

const NAMESPACE: Edit = {
  what: "a line `name:` under `metadata:`",
  place: /^metadata:\n {2}name: .*$/m,
  template: () => "$&\n  namespace: {{ .Release.Namespace }}",
};
/** The edits of every pod. */
const POD: readonly Edit[] = [
  {
    what: "a line `image: berth`",
    place: /^( +)image: berth$/m,
    template: () => '$1image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"',
  },
  {
    what: "a block `resources:` of its container",
    place: /^ {10}resources:\n( {12}.*\n)+/m,
    template: (values) => `          resources: {{- toYaml ${values}.resources | nindent 12 }}\n`,
  },
  {
    what: "a line `env:` of its container",
    place: /^ {10}env:$/m,
    template: (values) =>
      `$&\n            {{- with ${values}.extraEnv }}\n            {{- toYaml . | nindent 12 }}\n            {{- end }}`,
  },
];
const REPLICAS: Edit = {
  what: "a line `replicas:`",
  place: /^ {2}replicas: .*$/m,
  template: (values) => `  replicas: {{ ${values}.replicas }}`,
};
const bound = (name: string): Edit => ({
  what: `a line \`${name}:\``,
  place: new RegExp(`^ {2}${name}: .*$`, "m"),
  template: (values) => `  ${name}: {{ ${values}.${name} }}`,
});
/** The edits of the resources that differ between clouds, by their kind. */
const EDITS: Readonly<Record<string, readonly Edit[]>> = {
  Deployment: [...POD, REPLICAS],
  StatefulSet: [...POD, REPLICAS],
  Job: POD,
  HorizontalPodAutoscaler: [bound("minReplicas"), bound("maxReplicas")],
};
const HOSTS: Edit = {
  what: "a line of BERTH_HOSTS",
  place: /\{ name: BERTH_HOSTS, value: "50" \}/,
  template: (values) => `{ name: BERTH_HOSTS, value: {{ ${values}.hosts | quote }} }`,
};
/** The edits of resources that differ from others of their kind. */
const OTHER_EDITS: Readonly<Record<string, readonly Edit[]>> = {
  // Its autoscaler decides how many there are.
  "Deployment scheduler": POD,
  "StatefulSet compute-agent": [...POD, REPLICAS, HOSTS],
};

/**
 * The templates of a chart by their paths below the chart. They are the kustomize files, with values in the places that differ between
 * clouds. With the values of values.yaml, they are what kustomize makes, except that the namespace is the release's. `read` returns the text of a
 * kustomize file. Throws an error that names the file and the resource when a place that becomes a template is not found exactly once.
 */
export function chartTemplates(
  chart: ChartName,
  read: (path: string) => string = readKustomizeFile,
): Readonly<Record<string, string>> {
  const made = SOURCES[chart].map((path) => {
    const resources = read(path).split("---\n");
    return [`templates/${path.split("/")[1]}`, resources.map((text) => resourceTemplate(path, text)).join("---\n")];
  });
  const config = chart === "berth-cell" ? { "templates/cell.yaml": CELL_CONFIG } : {};
  return { ...Object.fromEntries(made), ...config };
}

function readKustomizeFile(path: string): string {
  return readFileSync(join(KUBERNETES, path), "utf8");
}

function resourceTemplate(path: string, text: string): string {
  const kind = /^kind: (\S+)$/m.exec(text)?.[1] ?? "resource without a kind";
  const name = /^metadata:\n {2}name: (\S+)$/m.exec(text)?.[1] ?? "";
  const values = `.Values.${VALUES_KEYS[name] ?? name}`;
  const edits = [NAMESPACE, ...(OTHER_EDITS[`${kind} ${name}`] ?? EDITS[kind] ?? [])];
  return edits.reduce((edited, { what, place, template }) => {
    const found = edited.match(new RegExp(place, `${place.flags}g`))?.length ?? 0;
    if (found !== 1)
      throw new Error(
        `${path}: the ${kind} ${name} has ${what} ${found} times, and the chart needs it once. Write the file as the others are written, or change the edits in deploy/helm-files.ts.`,
      );
    return edited.replace(place, template(values));
  }, text);
}
