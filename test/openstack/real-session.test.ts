import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hasOpenstackClient, OpenstackClient } from "./openstack-client.ts";
import { hasRealCloud, type RealCloud, startRealCloud } from "./real-cloud.ts";
import { REAL_SESSION } from "./real-session.ts";
import { commandsOf, runSession } from "./run-session.ts";

const NEWER = "2.90";
// The key is nobody's: its private half was thrown away.
const PUBLIC_KEY =
  "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl nobody@example.org";

// `npm run test:openstack` installs the packages and asks for this file.
describe.runIf(hasRealCloud && hasOpenstackClient)(
  "Debian's openstack command with Keystone, Glance, Neutron and Cinder",
  () => {
    let cloud: RealCloud;
    let oldest: OpenstackClient;
    let newest: OpenstackClient;
    const kept = new Map<string, string>();

    beforeAll(async () => {
      cloud = await startRealCloud();
      const { directory } = cloud;
      const files = { file: "a disk".repeat(1_000), public: `${PUBLIC_KEY}\n` };
      for (const [name, content] of Object.entries(files)) {
        kept.set(name, join(directory, name));
        await writeFile(join(directory, name), content);
      }
      const settings = { cloudsFile: join(directory, "clouds.yaml"), cloud: "real", home: directory };
      oldest = new OpenstackClient({ ...settings, computeVersion: "2.1" });
      newest = new OpenstackClient({ ...settings, computeVersion: NEWER });
    }, 900_000);
    afterAll(async () => {
      await oldest?.close();
      await newest?.close();
      await cloud?.stop();
    });

    test(`does what an administrator asks in a session of ${commandsOf(REAL_SESSION)} commands`, {
      timeout: 5_400_000,
    }, async () => {
      expect(await runSession(REAL_SESSION, { oldest, newest }, kept)).toEqual([]);
    });
  },
);
