import { withoutTrailing } from "../../core/without-trailing.ts";
import { askApi, faultMessage, OperatorsApiError } from "./operators-client.ts";

/**
 * Throws `OperatorsApiError` unless the api serves the dashboard: its page, or only the data that `berth top` shows, too. An api that cannot read its page
 * answers 503 for it, and serves the data. The error says how to start an api with a dashboard, or quotes the api.
 */
export async function requireDashboard(apiUrl: string, needed: "page" | "data"): Promise<void> {
  const target = `${withoutTrailing(apiUrl, "/")}/dashboard`;
  const { status, body } = await askApi(target);
  if (status === 200 || (status === 503 && needed === "data")) return;
  const why =
    status === 404
      ? "serves no dashboard: start it with BERTH_DASHBOARD=true (--dashboard)"
      : `answers ${status} to GET /dashboard: ${faultMessage(body) ?? "it does not say why"}`;
  throw new OperatorsApiError(String(status), `the api at ${new URL(target).origin} ${why}`);
}
