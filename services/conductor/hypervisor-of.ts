import type { HypervisorFacts, NodeFacts } from "../../core/ledger/hypervisor-facts.ts";
import type { HypervisorReport, NodeReport } from "../../proto/gen/berth/agent.ts";

/** Limits cpu_info, because all of it is sent to every scheduler and kept there for each host. */
const CPU_INFO_LENGTH_MAX = 20_000;
const CPU_INFO_DEPTH_MAX = 32;
const ENTRIES_MAX = 1_000;
/** The same limit as in hosts files. */
const TEXT_CHARS_MAX = 255;
const REASON_CHARS_MAX = 1_000;

/** The hypervisor facts of a report, or what is wrong with them. Undefined when the report contains none. */
export function hypervisorOfReport(
  report: HypervisorReport | undefined,
): HypervisorFacts | undefined | { readonly refused: string } {
  if (report === undefined) return undefined;
  const { type, version, hostIp, supportedInstances, metrics, bootedAtMs } = report;
  const cpuInfo = parseCpuInfo(report.cpuInfo);
  if (cpuInfo === null)
    return { refused: "the hypervisor's cpu_info is not a JSON object, or too long, or nested too deeply" };
  if (supportedInstances.length > ENTRIES_MAX || Object.keys(metrics).length > ENTRIES_MAX)
    return { refused: "the hypervisor reports too many metrics or supported instances" };
  const texts = [
    ...[type, hostIp, ...Object.keys(metrics), report.node?.provisionState ?? "", report.node?.powerState ?? ""],
    ...supportedInstances.flatMap(({ architecture, hypervisorType, vmMode }) => [architecture, hypervisorType, vmMode]),
  ];
  const long = texts.find((text) => text.length > TEXT_CHARS_MAX);
  if (long !== undefined)
    return { refused: `a text of the hypervisor is longer than ${TEXT_CHARS_MAX} characters: ${long.slice(0, 50)}…` };
  if (!Number.isSafeInteger(version) || version < 0)
    return { refused: `the hypervisor's version is ${version}, and must be a number from 0 on` };
  if (!Object.values(metrics).every(Number.isFinite)) return { refused: "a metric of the hypervisor is not a number" };
  // The database refuses both U+0000 and half of a surrogate pair. In JSON only an unpaired surrogate appears as a \u escape.
  if (JSON.stringify(report).includes("\\u0000"))
    return { refused: "the hypervisor's report contains the character U+0000" };
  if (/\\ud[89a-f]/.test(JSON.stringify(cpuInfo)))
    return { refused: "the hypervisor's cpu_info contains half of a surrogate pair" };
  return {
    ...{ type, version, hostIp, metrics, cpuInfo, bootedAtMs },
    ...(report.node && { node: nodeOf(report.node) }),
    ...(report.closedBecause !== "" && { closedBecause: shortened(report.closedBecause) }),
    supportedInstances: supportedInstances.map(
      ({ architecture, hypervisorType, vmMode }) => [architecture, hypervisorType, vmMode] as const,
    ),
  };
}

/** The reason may contain a text of the hosts file, so it is cut and not refused. */
function nodeOf({ provisionState, powerState, closedBecause }: NodeReport): NodeFacts {
  return {
    ...{ provisionState: harmless(provisionState), powerState: harmless(powerState) },
    closedBecause: shortened(closedBecause),
  };
}

const shortened = (reason: string): string => harmless([...reason].slice(0, REASON_CHARS_MAX).join(""));

/** Without the control characters that a terminal of an operator would obey, since a host may be compromised. */
const harmless = (text: string): string => text.replaceAll(/\p{Cc}/gu, "\ufffd");

function parseCpuInfo(text: string): Readonly<Record<string, unknown>> | null {
  if (text === "") return {};
  if (text.length > CPU_INFO_LENGTH_MAX) return null;
  try {
    const value: unknown = JSON.parse(text);
    if (depthOf(value) > CPU_INFO_DEPTH_MAX) return null;
    return value !== null && typeof value === "object" && !Array.isArray(value) ? { ...value } : null;
  } catch {
    return null;
  }
}

/** How deeply a value is nested. Stops just beyond the limit, since the value may be nested more deeply than this process can follow. */
function depthOf(value: unknown, above = 0): number {
  if (value === null || typeof value !== "object" || above > CPU_INFO_DEPTH_MAX) return above;
  return Object.values(value).reduce<number>((deepest, one) => Math.max(deepest, depthOf(one, above + 1)), above + 1);
}
