import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { parseAllDocuments } from "yaml";

/** One resource of deploy/kubernetes, reduced to the fields that are read. */
export interface Manifest {
  /** The path below deploy/kubernetes. */
  readonly file: string;
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly content: Readonly<Record<string, unknown>>;
}

const DIR = join(import.meta.dirname, "kubernetes");

/** All resources, in the order of their files, except files that are not for the cluster itself (kustomize's and the adapter's). */
export function readManifests(): readonly Manifest[] {
  const files = readdirSync(DIR, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".yaml") && file.includes("/") && !file.endsWith("kustomization.yaml"))
    .toSorted();
  return files.flatMap((file) => manifestsOf(join(DIR, file)));
}

/** The resources of one file or of kustomize's output. Throws on bad YAML. */
export function manifestsOf(path: string, text: string = readFileSync(path, "utf8")): readonly Manifest[] {
  return parseAllDocuments(text).map((document) => {
    const [error] = document.errors;
    if (error !== undefined) throw new Error(`${path}: ${error.message}`);
    const content = document.toJS() as Manifest["content"];
    const { apiVersion, kind, metadata } = content as unknown as Manifest & { readonly metadata: { name: string } };
    return { file: relative(DIR, path), apiVersion, kind, name: metadata.name, content };
  });
}
