import { readFileSync } from "node:fs";
import { join } from "node:path";

const KUBERNETES = join(import.meta.dirname, "kubernetes");

/** The kustomize files from which each chart's templates are made. */
const SOURCES = {
  berth: ["base/prepare.yaml", "base/api.yaml", "base/scheduler.yaml", "base/audit.yaml", "base/network-policies.yaml"],
  "berth-cell": ["cell/conductor.yaml", "cell/compute-agent.yaml", "cell/network-policies.yaml"],
} as const;
export type ChartName = keyof typeof SOURCES;
export const CHARTS = Object.keys(SOURCES) as readonly ChartName[];

/** The keys of values.yaml are words in camel case, because templates read keys with a hyphen only by a function. */
const VALUES_KEYS: Readonly<Record<string, string>> = { "compute-agent": "computeAgent" };

const CELL_CONFIG = `apiVersion: v1
kind: ConfigMap
metadata:
  name: cell
  namespace: {{ .Release.Namespace }}
data:
  BERTH_CELL: {{ required "cell: the name of the cell" .Values.cell | quote }}
`;

/**
 * The templates of a chart by their paths below the chart. They are the kustomize files, with values in the places that differ between
 * clouds. With the values of values.yaml, they are what kustomize makes, except that the namespace is the release's.
 */
export function chartTemplates(chart: ChartName): Readonly<Record<string, string>> {
  const made = SOURCES[chart].map((path) => {
    const text = readFileSync(join(KUBERNETES, path), "utf8");
    return [`templates/${path.split("/")[1]}`, templateOf(text)] as const;
  });
  const config = chart === "berth-cell" ? { "templates/cell.yaml": CELL_CONFIG } : {};
  return { ...Object.fromEntries(made), ...config };
}

function templateOf(text: string): string {
  return text.split("---\n").map(resourceTemplate).join("---\n");
}

function resourceTemplate(text: string): string {
  const name = /^metadata:\n {2}name: (\S+)$/m.exec(text)?.[1] ?? "";
  const values = `.Values.${VALUES_KEYS[name] ?? name}`;
  const named = text.replace(/^metadata:\n {2}name: .*$/m, "$&\n  namespace: {{ .Release.Namespace }}");
  if (!/^kind: (Deployment|StatefulSet|Job|HorizontalPodAutoscaler)$/m.test(text)) return named;
  return named
    .replace(
      /^( +)image: berth$/m,
      '$1image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"',
    )
    .replace(/^ {2}replicas: .*$/m, `  replicas: {{ ${values}.replicas }}`)
    .replace(/^ {2}(minReplicas|maxReplicas): .*$/gm, `  $1: {{ ${values}.$1 }}`)
    .replace(/^ {10}resources:\n( {12}.*\n)+/m, `          resources: {{- toYaml ${values}.resources | nindent 12 }}\n`)
    .replace(
      /^ {10}env:$/m,
      `$&\n            {{- with ${values}.extraEnv }}\n            {{- toYaml . | nindent 12 }}\n            {{- end }}`,
    )
    .replace('{ name: BERTH_HOSTS, value: "50" }', `{ name: BERTH_HOSTS, value: {{ ${values}.hosts | quote }} }`);
}
