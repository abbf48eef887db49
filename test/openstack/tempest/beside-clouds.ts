import { type RealCloud, startRealCloud } from "../real-cloud.ts";
import { startRealNova } from "../real-nova.ts";
import type { TwiceCloud, TwiceParts } from "./ask-twice.ts";
import { FLAVORS, prepareShared, prepareTempest } from "./prepare-tempest.ts";

const NOVA_REGION = "two";
/** The newest microversion of Debian 12's Nova. Both clouds are tested up to it. */
const VERSION_MAX = "2.93";

/** The same neighbours with Berth and with Debian's Nova, each of which has accounts of its own. */
export interface BesideClouds {
  /** The directories of the configurations with which Tempest tests each. */
  readonly directories: Readonly<Record<"berth" | "nova", string>>;
  /** Their Compute APIs, and what calls of both can use. */
  readonly apis: Readonly<Record<"berth" | "nova", TwiceCloud>>;
  readonly parts: TwiceParts;
  stop(): Promise<void>;
}

/** Starts Keystone, Glance, Neutron and Cinder, and beside them Berth and Nova in different regions. Cost: three minutes of CPU time. */
export async function startBesideClouds(): Promise<BesideClouds> {
  const cloud = await startRealCloud({ BERTH_SHELVED_OFFLOAD_TIME: "0" });
  try {
    return await withNova(cloud);
  } catch (error) {
    await cloud.stop();
    throw error;
  }
}

/** Starts Nova beside a cloud, which is stopped with it, and prepares both for Tempest. Of Nova nothing is left when it rejects. */
export async function withNova(cloud: RealCloud): Promise<BesideClouds> {
  const stops: (() => Promise<void>)[] = [];
  const stop = async () => {
    for (const end of stops.toReversed()) await end();
  };
  try {
    await cloud.keystone.call("POST", "/regions", { region: { id: NOVA_REGION } });
    const { keystone, region, imageUrl, networkUrl } = cloud;
    const nova = await startRealNova({ keystone, region, imageUrl, networkUrl }, NOVA_REGION, (type, url) =>
      cloud.register(type, url, NOVA_REGION),
    );
    stops.push(() => nova.stop());
    const shared = await prepareShared(cloud);
    const of = { hostsMin: 2, maxVersion: VERSION_MAX };
    const directories = {
      berth: await prepareTempest(cloud, shared, { ...of, name: "berth", computeRegion: region, url: cloud.url }),
      nova: await prepareTempest(cloud, shared, { ...of, name: "nova", computeRegion: NOVA_REGION, url: nova.url }),
    };
    const api = (url: string): TwiceCloud => ({ url: `${url}/v2.1`, issue: () => keystone.issue() });
    stops.unshift(() => cloud.stop());
    return {
      ...{ directories, stop, apis: { berth: api(cloud.url), nova: api(nova.url) } },
      parts: { flavor: FLAVORS[0], image: shared.images[0] ?? "", networkId: shared.networkId },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}
