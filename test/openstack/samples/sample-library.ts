import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

const SAMPLES = "doc/api_samples";
const TEMPLATES = "nova/tests/functional/api_sample_tests/api_samples";

/** One file of `doc/api_samples`. */
export interface Sample {
  readonly folder: string;
  /** The minor number of the microversion that the sample is about; 1 for a file outside the folders `v2.Y`. */
  readonly minor: number;
  readonly name: string;
  /** The template that upstream's functional test uses, or the sample itself where there is no template. */
  readonly text: string;
}

/** The sample requests and answers of an openstack/nova checkout. Nothing of them is stored in this repository. */
export class SampleLibrary {
  readonly #samples = new Map<string, Sample>();

  private constructor(samples: readonly Sample[]) {
    for (const sample of samples) this.#samples.set(keyOf(sample), sample);
  }

  /** Reads a checkout, or a git directory without a work tree, whose newest commit is read. Throws when it has no samples. */
  static read(source: string): SampleLibrary {
    const files = existsSync(join(source, SAMPLES)) ? readTree(source) : readGit(source);
    const samples = [...files].flatMap(([path, text]) => {
      const found = /^doc\/api_samples\/([^/]+)\/(?:v2\.(\d+)\/)?([^/]+)\.json$/.exec(path);
      if (found === null) return [];
      const [, folder = "", minor, name = ""] = found;
      const template = files.get(`${path.replace(SAMPLES, TEMPLATES)}.tpl`);
      return [{ folder, minor: minor === undefined ? 1 : Number(minor), name, text: (template ?? text).trim() }];
    });
    if (samples.length === 0) throw new Error(`${source} has no ${SAMPLES}`);
    return new SampleLibrary(samples);
  }

  get all(): readonly Sample[] {
    return [...this.#samples.values()];
  }

  /** The newest sample of this name that is not newer than the microversion, or null. */
  newest(folder: string, name: string, minor: number): Sample | null {
    for (let at = minor; at >= 1; at--) {
      const sample = this.#samples.get(keyOf({ folder, name, minor: at }));
      if (sample !== undefined) return sample;
    }
    return null;
  }
}

function keyOf({ folder, minor, name }: Pick<Sample, "folder" | "minor" | "name">): string {
  return `${folder}/${minor}/${name}`;
}

function readTree(source: string): ReadonlyMap<string, string> {
  const files = new Map<string, string>();
  const walk = (path: string): void => {
    for (const name of readdirSync(join(source, path)).sort()) {
      const inner = `${path}/${name}`;
      if (statSync(join(source, inner)).isDirectory()) walk(inner);
      else if (isSample(name)) files.set(inner, readFileSync(join(source, inner), "utf8"));
    }
  };
  walk(SAMPLES);
  walk(TEMPLATES);
  return files;
}

function readGit(source: string): ReadonlyMap<string, string> {
  const git = (...words: string[]) =>
    execFileSync("git", ["-C", source, ...words], { encoding: "utf8", maxBuffer: 1 << 26 });
  const paths = git("ls-tree", "-r", "--name-only", "HEAD", SAMPLES, TEMPLATES).split("\n").filter(isSample);
  return new Map(paths.map((path) => [path, git("show", `HEAD:${path}`)]));
}

function isSample(name: string): boolean {
  return name.endsWith(".json") || name.endsWith(".json.tpl");
}
