import { request } from "undici";
import { withoutTrailing } from "../../core/without-trailing.ts";
import { OperatorsApiError, unreachable } from "./operators-client.ts";

const ANSWER_MS = 60_000;

/** Throws `OperatorsApiError` unless the api serves the dashboard, whose data `berth top` shows, too. The error says how to start such an api. */
export async function requireDashboard(apiUrl: string): Promise<void> {
  const target = `${withoutTrailing(apiUrl, "/")}/dashboard`;
  const options = { headersTimeout: ANSWER_MS, bodyTimeout: ANSWER_MS };
  const answer = await request(target, options).catch((error: unknown) => {
    throw unreachable(target, error);
  });
  await answer.body.dump();
  if (answer.statusCode === 200) return;
  const why =
    answer.statusCode === 404
      ? "serves no dashboard: start it with BERTH_DASHBOARD=true (--dashboard)"
      : `answers ${answer.statusCode} to GET /dashboard`;
  throw new OperatorsApiError(String(answer.statusCode), `the api at ${new URL(target).origin} ${why}`);
}
