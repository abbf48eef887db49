/** The chapters of the site's menu. A test checks that each page of docs/ is in one of them. */
export const CHAPTERS: readonly { readonly title: string; readonly sources: readonly string[] }[] = [
  {
    title: "Begin",
    sources: ["README.md", "docs/openstack-client.md", "docs/glossary.md", "docs/dashboard.md", "docs/explain.md"],
  },
  {
    title: "Run a cloud",
    sources: [
      "docs/compose.md",
      "docs/kubernetes.md",
      "docs/operating.md",
      "docs/cells.md",
      "docs/authentication.md",
      "docs/compute-agent.md",
      "docs/audit.md",
      "docs/releasing.md",
    ],
  },
  {
    title: "Use it",
    sources: [
      "docs/compute-api.md",
      "docs/servers.md",
      "docs/consoles.md",
      "docs/moves.md",
      "docs/neutron.md",
      "docs/cinder.md",
      "docs/requests.md",
      "docs/server-groups.md",
      "docs/quotas.md",
      "docs/aggregates.md",
      "docs/filters-and-weighers.md",
      "docs/placement.md",
    ],
  },
  { title: "Test and measure", sources: ["docs/simulator.md", "docs/chaos.md", "docs/traces.md", "docs/packing.md"] },
  {
    title: "Inside",
    sources: [
      "ARCHITECTURE.md",
      "docs/scheduling-at-scale.md",
      "docs/scaling.md",
      "docs/operations.md",
      "docs/recipes.md",
      "docs/decisions",
      "CONTRIBUTING.md",
      "CHANGELOG.md",
    ],
  },
];

/** The how-tos of the menu: sections of pages that the tests follow command by command. A test checks that the headings exist. */
export const HOW_TOS: readonly { readonly title: string; readonly page: string; readonly heading: string }[] = [
  {
    title: "Replace Placement in a running OpenStack",
    page: "docs/placement.md",
    heading: "replacing-the-placement-of-a-running-cloud",
  },
  { title: "Bring up two cells with compose", page: "docs/compose.md", heading: "several-cells-in-containers" },
  { title: "Write a filter", page: "docs/filters-and-weighers.md", heading: "your-own" },
  { title: "Test a scheduler under chaos", page: "docs/chaos.md", heading: "your-own-suites" },
  { title: "Drain a host", page: "docs/moves.md", heading: "emptying-a-host" },
];

export type ReferenceName = "compute" | "placement" | "operators";

/** The generated references: each with its page, the guide that it follows in the menu, and its OpenAPI document in the site. */
export const REFERENCES = [
  {
    ...{ name: "compute", path: "docs/compute-reference.md", guide: "docs/compute-api.md" },
    document: "docs/compute.openapi.json",
  },
  {
    ...{ name: "placement", path: "docs/placement-api.md", guide: "docs/placement.md" },
    document: "docs/placement.openapi.json",
  },
  {
    ...{ name: "operators", path: "docs/operators-reference.md", guide: "docs/operating.md" },
    document: "docs/operators.openapi.json",
  },
] as const satisfies readonly { readonly name: ReferenceName; path: string; guide: string; document: string }[];
