import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** The parts of npm's output that are changed here. */
interface NpmSbom {
  readonly components: readonly { readonly "bom-ref": string }[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
  readonly metadata: { readonly component: object; readonly timestamp?: string; readonly tools?: readonly object[] };
  readonly serialNumber?: string;
}

/**
 * Returns the software bill of materials of the package in `staged`, in CycloneDX's JSON: every package of its lock, with version, hash and
 * licence. The same lock gives the same text, so a serial number, the time and the version of npm are left out, and all is in order.
 */
export async function makeSbom(staged: string, name: string): Promise<string> {
  const words = ["sbom", "--sbom-format=cyclonedx", "--sbom-type=application", "--package-lock-only"];
  const { stdout } = await promisify(execFile)("npm", words, { cwd: staged, maxBuffer: 64_000_000 });
  const { serialNumber: _serial, metadata, ...sbom } = JSON.parse(stdout) as NpmSbom;
  const { timestamp: _timestamp, tools: _tools, ...lasting } = metadata;
  const ordered = {
    ...sbom,
    metadata: { ...lasting, component: { ...metadata.component, name } },
    components: sbom.components.toSorted((a, b) => inOrder(a["bom-ref"], b["bom-ref"])),
    dependencies: sbom.dependencies
      .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.toSorted(inOrder) }))
      .toSorted((a, b) => inOrder(a.ref, b.ref)),
  };
  return `${JSON.stringify(ordered, null, 2)}\n`;
}

function inOrder(one: string, other: string): number {
  return one < other ? -1 : Number(one > other);
}
