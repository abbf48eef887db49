import { expect, test } from "vitest";
import type { LxdClient } from "../../../adapters/lxd/lxd-client.ts";
import { containerName, OWN_KEYS } from "./container-of-server.ts";
import { containersOn, hostedContainers } from "./containers-of-guests.ts";

const HOSTS = new Set(["h"]);

/** An LXD that lists these containers. */
const lxdWith = (...containers: readonly { readonly name: string; readonly config: Record<string, string> }[]) =>
  ({ call: async () => containers.map((one) => ({ status: "Stopped", ...one })) }) as unknown as LxdClient;
const guest = (at: number, host = "h") => ({ host, serverUuid: `s${at}`, attemptId: `t${at}/0` });
const configOf = ({ host, serverUuid, attemptId }: ReturnType<typeof guest>) => ({
  ...{ [OWN_KEYS.host]: host, [OWN_KEYS.server]: serverUuid, [OWN_KEYS.attempt]: attemptId },
  [OWN_KEYS.hasRun]: "true",
});
const containerOf = (of: ReturnType<typeof guest>) => ({ name: containerName(of), config: configOf(of) });

test("containers that Berth did not make, or of other hosts, are no guests of this host", async () => {
  const { [OWN_KEYS.attempt]: _, ...half } = configOf(guest(3));
  const lxd = lxdWith(...[containerOf(guest(1)), containerOf(guest(2, "another")), { name: "mine", config: {} }], {
    name: containerName(guest(3)),
    config: half,
  });
  expect(await hostedContainers(lxd, HOSTS, "192.0.2.1")).toEqual([{ ...guest(1), stage: "has-run", volumeIds: [] }]);
  expect(await containersOn(lxd, HOSTS)).toEqual([{ ...guest(1), running: false }]);
});

test("a copy of a guest's container, which bears the guest's keys, is no guest: orders would not find it", async () => {
  const lxd = lxdWith(
    containerOf(guest(1)),
    ...[1, 2].map((at) => ({ name: `copy-${at}`, config: configOf(guest(at)) })),
  );
  expect(await hostedContainers(lxd, HOSTS, "192.0.2.1")).toMatchObject([guest(1)]);
});
