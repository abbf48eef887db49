/** The fields of the clone's package.json that the package takes over, or is made from. */
export interface CloneManifest {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly license: string;
  readonly type: string;
  readonly bin: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly optionalDependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

/** The fields of package-lock.json that are read or written here. */
export interface PackageLock {
  readonly name: string;
  readonly version: string;
  readonly lockfileVersion: number;
  readonly packages: Readonly<Record<string, LockedPackage>>;
}
export interface LockedPackage {
  readonly version?: string;
  readonly license?: string;
  readonly dev?: boolean;
  readonly devOptional?: boolean;
}

/**
 * The package.json of the npm package: that of the clone without the fields that only development needs, with compiled files in place of
 * TypeScript.
 * `berth/chaos/vitest` is for those who use vitest anyway, so the package does not bring it along.
 */
export function publishedManifest(clone: CloneManifest): object {
  const { name, version, description, license, type, bin, dependencies, optionalDependencies } = clone;
  const exported = Object.entries(clone.exports).map(([path, file]) => [path, exportOf(file)]);
  return {
    ...{ name, version, description, license, type, bin },
    exports: Object.fromEntries(exported),
    ...{ dependencies, optionalDependencies },
    peerDependencies: { vitest: clone.devDependencies["vitest"] },
    peerDependenciesMeta: { vitest: { optional: true } },
  };
}

function exportOf(file: string): string | { readonly types: string; readonly default: string } {
  if (!file.endsWith(".ts")) return file;
  return { types: file.replace(/\.ts$/, ".d.ts"), default: file.replace(/\.ts$/, ".js") };
}

/** The lock of the package, so that an installation gets the very versions of dependencies that the tests ran with. */
export function publishedLock(lock: PackageLock, manifest: object): PackageLock {
  const shipped = Object.entries(lock.packages).filter(([path, { dev, devOptional }]) => {
    return path !== "" && dev !== true && devOptional !== true;
  });
  return { ...lock, packages: { "": manifest, ...Object.fromEntries(shipped) } };
}
