/** A host aggregate as a request filter sees it: `HostAggregate` is one. Its uuid is also that of the placement aggregate. */
export interface RequestAggregate {
  readonly uuid: string;
  readonly metadata: ReadonlyMap<string, string>;
}

/** Which request filters are on. Named and meant as in Nova's `[scheduler]` section; all are off there, too, unless set. */
export interface RequestFilterSettings {
  /** Hosts without a zone of their own are in this one. */
  readonly defaultAvailabilityZone: string;
  /** A project goes to the aggregates that name it (`filter_tenant_id*`), if there are any. */
  readonly limitTenantsToPlacementAggregate: boolean;
  /** A project that no aggregate names gets no host. Only with the former. */
  readonly placementAggregateRequiredForTenants: boolean;
  /** Aggregates with `trait:X=required` are closed to requests that do not ask for X. */
  readonly enableIsolatedAggregateFiltering: boolean;
  /** Only hosts that support the image's disk format. */
  readonly queryPlacementForImageTypeSupport: boolean;
  /** Only hosts that support the image's bus, video, network and IOMMU models and architecture. */
  readonly imageMetadataPrefilter: boolean;
  /** Resource class of each PCI alias; an alias that is not here has one made of its name. */
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

/** What request filters know beside the request. Replace the object when something changes: translations are remembered by it. */
export interface RequestContext {
  /** Of the whole cloud. */
  readonly aggregates: readonly RequestAggregate[];
  readonly settings: RequestFilterSettings;
}

/** No aggregates, no filter on. */
export const PLAIN_CONTEXT: RequestContext = { aggregates: [], settings: DEFAULT_REQUEST_FILTER_SETTINGS };
