import { QUOTA_DEFAULTS, type QuotaKind } from "../services/api/compute/quotas/quota-defaults.ts";
import { type ApiSettings, DEFAULT_API_SETTINGS } from "../services/api/settings.ts";

type ApiOptions = Partial<
  Pick<
    ApiSettings,
    | "auth"
    | "resizeToSameHost"
    | "reclaimInstanceIntervalMs"
    | "dashboard"
    | "networks"
    | "volumes"
    | "shelvedOffloadTime"
  >
>;

/** Returns the settings of the only api of a cloud in one process. */
export function embeddedApiSettings({
  listen,
  auth = "none",
  resizeToSameHost = false,
  reclaimInstanceIntervalMs = 0,
  quotas = "unlimited",
  dashboard = false,
  networks = "none",
  volumes = "none",
  shelvedOffloadTime = -1,
}: ApiOptions & { readonly listen: ApiSettings["http"]["listen"]; readonly quotas?: QuotaKind }) {
  const http = { ...DEFAULT_API_SETTINGS.http, listen };
  // This is the only api, so it hears of every change of a flavor itself.
  return {
    ...DEFAULT_API_SETTINGS,
    auth,
    flavorCacheMs: 60_000,
    resizeToSameHost,
    reclaimInstanceIntervalMs,
    dashboard,
    networks,
    volumes,
    shelvedOffloadTime,
    http,
    quotas: QUOTA_DEFAULTS[quotas],
  };
}
