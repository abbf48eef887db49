import { expect, test } from "vitest";
import { SettingsError } from "../../../runtime/settings.ts";
import { refuseOpenNetwork } from "./open-network.ts";

test.each([
  ["none", "127.0.0.1", false, false],
  ["none", "::1", false, false],
  ["none", "0.0.0.0", false, true],
  ["none", "::", false, true],
  ["noauth2", "10.0.0.1", false, true],
  ["noauth2", "localhost", false, false],
  ["none", "0.0.0.0", true, false],
  ["keystone", "0.0.0.0", false, false],
] as const)("--auth %s on %s, allowed by hand: %s, is refused: %s", (auth, host, allowed, isRefused) => {
  const check = () => refuseOpenNetwork({ auth, listen: { host, port: 8774 }, allowUnauthenticatedNetwork: allowed });
  if (isRefused) expect(check).toThrow(SettingsError);
  else expect(check).not.toThrow();
});

test("the refusal names the settings and a remedy", () => {
  const check = () =>
    refuseOpenNetwork({ auth: "none", listen: { host: "::", port: 1 }, allowUnauthenticatedNetwork: false });
  expect(check).toThrow(/BERTH_LISTEN .* is \[::\]:1 and BERTH_AUTH .* is none: .*BERTH_AUTH=keystone.*--allow-unauth/);
});
