/** The facts about the clone that are checked before a release. */
export interface ReleasePapers {
  readonly tag: string;
  readonly version: string;
  readonly license: string;
  readonly changelog: string;
  readonly licenceText: string;
  /** Dependencies that an installation brings along. */
  readonly shipped: readonly { readonly path: string; readonly licence: string; readonly isAllowed: boolean }[];
  /** Files that differ from the commit. */
  readonly changedFiles: readonly string[];
}

/**
 * The requirements that the commit does not meet yet for a release under the tag, one sentence each. Empty when it
 * meets all of them.
 */
export function shortfallsOf(papers: ReleasePapers): readonly string[] {
  const { tag, version, license, changelog, licenceText, shipped, changedFiles } = papers;
  const section = sectionOf(changelog, version);
  const title = /Apache License\s+Version 2\.0/.test(licenceText) ? "Apache-2.0" : "another licence";
  return [
    ...(tag === `v${version}` ? [] : [`package.json has the version ${version}, whose tag is v${version}`]),
    ...(section === null ? [`CHANGELOG.md has no section "## ${version}"`] : []),
    ...(section === "" ? [`the section "## ${version}" of CHANGELOG.md is empty`] : []),
    ...(title === license ? [] : [`package.json says ${license}, and the file LICENSE has ${title}`]),
    ...shipped
      .filter(({ isAllowed }) => !isAllowed)
      .map(
        ({ path, licence }) => `${path} has the licence ${licence}, which release/allowed-licences.ts does not allow`,
      ),
    ...changedFiles.map((line) => `the clone differs from its commit: ${line}`),
  ];
}

/** The text below `## <version>`, which a date may follow, up to the next section. Null when there is no such section. */
function sectionOf(changelog: string, version: string): string | null {
  const sections = changelog.split(/^## /m).slice(1);
  const found = sections.find((section) => section.split(/\s/, 1)[0] === version);
  return found === undefined ? null : found.split("\n").slice(1).join("\n").trim();
}
