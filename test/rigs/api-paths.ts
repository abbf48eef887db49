import { DEFAULT_API_SETTINGS } from "../../services/api/settings.ts";

/** Settings for tests of the second prefix of the Compute API, or of HEAD. */
export const ALL_PATHS = { http: DEFAULT_API_SETTINGS.http } as const;

/** One prefix and no HEAD, with which an api starts in half the time. */
export const FEW_PATHS = {
  http: { ...DEFAULT_API_SETTINGS.http, computePrefixes: ["/v2.1"], headRoutes: false },
} as const;
