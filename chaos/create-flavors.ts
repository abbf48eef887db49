import type { ChaosApi } from "./chaos-api.ts";
import { insist } from "./insist.ts";

export const SMALL_VCPUS = 1;
const FLAVORS = [
  { id: "chaos", vcpus: SMALL_VCPUS, ram: 512 },
  { id: "chaos-large", vcpus: 2, ram: 1024 },
] as const;

/** The ids of a run's two flavors. Servers are created with the small one, and resized between the two. */
export interface ChaosFlavors {
  readonly small: string;
  readonly large: string;
}

/** Creates the flavors of a run unless they exist. Throws a NotServedError. */
export async function createFlavors(api: ChaosApi): Promise<ChaosFlavors> {
  for (const { id, vcpus, ram } of FLAVORS) {
    const body = { flavor: { id, name: id, vcpus, ram, disk: 1 } };
    await insist(api, async () => {
      const answer = await api.send({ method: "POST", path: "/flavors", body });
      return answer.status === 409 ? { kind: "ok", status: 409, body: null } : answer;
    });
  }
  const [small, large] = FLAVORS;
  return { small: small.id, large: large.id };
}
