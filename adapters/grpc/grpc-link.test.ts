import { expect, test } from "vitest";
import { SettingsError } from "../../runtime/settings.ts";
import { agentLinkContract } from "../../test/contract/agent-link.contract.ts";
import { isLoopback } from "./channel-options.ts";
import { createGrpcDialer } from "./grpc-dialer.ts";
import { createGrpcAgentListener } from "./grpc-listener.ts";

agentLinkContract("gRPC", async () => {
  const gone = await createGrpcAgentListener({ listen: "127.0.0.1:0" });
  await gone.close();
  return {
    listener: await createGrpcAgentListener({ listen: "127.0.0.1:0" }),
    dialer: createGrpcDialer(),
    nobody: gone.address,
  };
});

test("refuses to listen in plain text beyond this machine", async () => {
  await expect(createGrpcAgentListener({ listen: "0.0.0.0:0" })).rejects.toThrow(SettingsError);
});

test("names the setting whose TLS file is missing or is no PEM", () => {
  const here = import.meta.filename;
  const dial = (ca: string) => () => createGrpcDialer({ tls: { ca, cert: here, key: here } });
  expect(dial("/no/such/ca.pem")).toThrow(/^BERTH_TLS_CA \(--tls-ca\) cannot be read: ENOENT/);
  expect(dial(here)).toThrow(/^--tls-ca .*grpc-link.test.ts, .* cannot be used \(.*PEM.*\): give/);
});

test.each([
  ["127.0.0.1:7", true],
  ["localhost:7", true],
  ["[::1]:7", true],
  ["0.0.0.0:7", false],
  ["10.0.0.1:7", false],
])("knows whether %s is reachable from this machine alone", (address, loopback) => {
  expect(isLoopback(address)).toBe(loopback);
});
