import { expect, it } from "vitest";
import { serverSpec } from "../../../test/contract/cell-fixtures.ts";
import fc from "../../../test/rigs/property.ts";
import { host, provider, viewOf } from "../../../test/rigs/view-builders.ts";
import { requestGroup } from "../../candidates/request.ts";
import { resourceClass } from "../../ledger/ids.ts";
import { AggregateIndex } from "../aggregate-index.ts";
import { CellFilters } from "../filters/cell-filters.ts";
import { hostFilters, refusedBy } from "../filters/host-filters.ts";
import type { HostRequest } from "../host-request.ts";
import { LiveCellFacts } from "../live-cell-facts.ts";
import { DEFAULT_SCHEDULING_SETTINGS } from "../scheduling-settings.ts";
import { numInstances } from "../weighers/num-instances.ts";
import type { WeighedBy } from "../weighers/weigher.ts";
import { ClassBook, DEFAULT_CLASS_LIMITS } from "./class-book.ts";

const HOSTS = 8;
const names = Array.from({ length: HOSTS }, (_, index) => `h${index}`);
const hostRequest: HostRequest = {
  groups: [requestGroup({ resources: new Map([[resourceClass("VCPU"), 1]]) })],
  groupPolicy: "none",
};
const settings = {
  ...DEFAULT_SCHEDULING_SETTINGS,
  enabledFilters: ["AvailabilityZoneFilter", "NumInstancesFilter", "AggregateMultiTenancyIsolation"] as const,
  maxInstancesPerHost: 2,
};
const filters = hostFilters(settings);
const weighers: readonly WeighedBy[] = [
  { weigher: numInstances, multiplier: -1, option: "num_instances_weight_multiplier" },
];

const aggregate = (id: number, metadata: Record<string, string>, hosts: readonly string[]) => ({
  ...{ id, uuid: `a${id}`, name: `a${id}`, createdAtMs: 0, updatedAtMs: null, metadata, hosts },
});

const steps = fc.array(
  fc.oneof(
    fc.record({
      kind: fc.constant("server" as const),
      server: fc.nat({ max: 9 }),
      on: fc.option(fc.nat({ max: HOSTS - 1 })),
    }),
    fc.record({ kind: fc.constant("zone" as const), hosts: fc.subarray(names) }),
    fc.record({ kind: fc.constant("tenant" as const), hosts: fc.subarray(names) }),
    fc.record({
      kind: fc.constant("ask" as const),
      zone: fc.constantFrom("", "east"),
      project: fc.constantFrom("p1", "p2"),
    }),
  ),
  { maxLength: 60 },
);

it("rank the hosts that pass the filters now, whatever changed beside the ledger, with the fullest last", () => {
  fc.assert(
    fc.property(steps, (taken) => {
      const view = viewOf(...names.map((name) => [...provider(name, { VCPU: 9 }), host(name, name)]));
      const facts = new LiveCellFacts("cell", view);
      const cells = [{ name: "cell", view, facts }];
      const book = new ClassBook(DEFAULT_CLASS_LIMITS);
      let [east, closed]: (readonly string[])[] = [[], []];
      for (const step of taken) {
        if (step.kind === "server") {
          const on = step.on === null ? null : names[step.on]!;
          const spec = () => serverSpec(step.server);
          const [status, taskState, specRevision] = ["ACTIVE", null, 1] as const;
          facts.apply({ kind: "server-put", uuid: `${step.server}`, host: on, status, taskState, specRevision, spec });
        } else if (step.kind !== "ask") {
          if (step.kind === "zone") east = step.hosts;
          else closed = step.hosts;
          const records = [
            aggregate(1, { availability_zone: "east" }, east!),
            aggregate(2, { filter_tenant_id: "p2" }, closed!),
          ];
          facts.setAggregates(new AggregateIndex(records, "nova"));
        } else {
          const spec = serverSpec(100, { availabilityZone: step.zone, projectId: step.project });
          const bound = new CellFilters(filters, spec, cells);
          const [ranking] = book.classOf({ hostRequest, spec, filters, weighers }, cells, bound).rankings;
          const ranked = Array.from(
            { length: ranking!.sorted.count },
            (_, rank) => facts.at(ranking!.sorted.at(rank))!,
          );
          const fit = names.filter((name) => !refusedBy(bound.of(0).kind, facts.at(view.hosts.slotOf(name))!));
          expect(new Set(ranked.map(({ name }) => name))).toEqual(new Set(fit));
          const counts = ranked.map(({ servers }) => servers.size);
          expect(counts).toEqual(counts.toSorted((a, b) => a - b));
        }
      }
    }),
    { numRuns: 200 },
  );
});
