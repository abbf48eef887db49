/** A host aggregate as request filters see it. A `HostAggregate` can be passed. Its uuid is also that of the placement aggregate. */
export interface RequestAggregate {
  readonly uuid: string;
  readonly metadata: ReadonlyMap<string, string>;
}

/**
 * The settings of request filters, with the names and meaning of Nova's `[scheduler]` section. As in Nova, all filters are off by default.
 */
export interface RequestFilterSettings {
  /** The zone of hosts that no aggregate puts in a zone. */
  readonly defaultAvailabilityZone: string;
  /** Restricts a project to the aggregates that name it (`filter_tenant_id*`), if there are any. */
  readonly limitTenantsToPlacementAggregate: boolean;
  /** Gives no host to a project that no aggregate names. It has an effect only together with the previous setting. */
  readonly placementAggregateRequiredForTenants: boolean;
  /** Closes aggregates with `trait:X=required` to requests that do not require X. */
  readonly enableIsolatedAggregateFiltering: boolean;
  /** Admits only hosts that support the image's disk format. */
  readonly queryPlacementForImageTypeSupport: boolean;
  /** Admits only hosts that support the image's bus, video, network and IOMMU models and architecture. */
  readonly imageMetadataPrefilter: boolean;
  /** Resource class of each PCI alias. The class of any other alias is made from its name. */
  readonly pciAliases: Readonly<Record<string, string>>;
}

export const DEFAULT_REQUEST_FILTER_SETTINGS: RequestFilterSettings = {
  defaultAvailabilityZone: "nova",
  limitTenantsToPlacementAggregate: false,
  placementAggregateRequiredForTenants: false,
  enableIsolatedAggregateFiltering: false,
  queryPlacementForImageTypeSupport: false,
  imageMetadataPrefilter: false,
  pciAliases: {},
};

/**
 * The input of request filters in addition to the request. Replace the whole object when something changes, since translations are remembered by it.
 */
export interface RequestContext {
  /** All aggregates of the cloud. */
  readonly aggregates: readonly RequestAggregate[];
  readonly settings: RequestFilterSettings;
}

/** A context without aggregates and with every filter off. */
export const PLAIN_CONTEXT: RequestContext = { aggregates: [], settings: DEFAULT_REQUEST_FILTER_SETTINGS };
