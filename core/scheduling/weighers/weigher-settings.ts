/** The operators' settings that weighers read, besides their multipliers. */
export interface WeigherSettings {
  /** Ratio by name of metric. MetricsFilter requires hosts to report these metrics. */
  readonly metricsWeightSetting: Readonly<Record<string, number>>;
  /** Excludes a host without one of these metrics. Otherwise such a host weighs `metricsWeightOfUnavailable`. */
  readonly metricsRequired: boolean;
  readonly metricsWeightOfUnavailable: number;
  /** Ratio by image property. When it is empty, all properties count alike. */
  readonly imagePropsWeightSetting: Readonly<Record<string, number>>;
  /** Resource class of each PCI alias. The class of any other alias is made from its name. */
  readonly pciAliases: Readonly<Record<string, string>>;
  /** Classes that best_fit considers. When it is empty, it considers all that the request asks for. */
  readonly bestFitClasses: readonly string[];
}
