import type { HeatWorld } from "./heat-session.ts";
import type { RealCloud } from "./real-cloud.ts";
import { startRealHeat } from "./real-heat.ts";
import { HOST } from "./real-preparations.ts";

/** Starts Heat and makes what its session needs: two images, and a project whose quota it changes. `stop` removes them. */
export async function prepareHeat(cloud: RealCloud): Promise<HeatWorld & { stop(): Promise<void> }> {
  const { call, imageUrl, keystone } = cloud;
  const heat = await startRealHeat(cloud);
  const images: string[] = [];
  for (const name of ["heat-first", "heat-other"]) {
    const image = { name, disk_format: "raw", container_format: "bare", visibility: "public" };
    const { id } = await call("POST", `${imageUrl}/v2/images`, image);
    await call("PUT", `${imageUrl}/v2/images/${id}/file`, "a disk".repeat(100), "application/octet-stream");
    images.push(id);
  }
  const { project } = await call("POST", `${keystone.url}/projects`, {
    project: { name: "heat-another", domain_id: "default" },
  });
  return {
    ...{ cloud, heatUrl: heat.url, images, project: project.id, host: `${HOST}-4` },
    stop: async () => {
      await heat.stop();
      for (const id of images) await call("DELETE", `${imageUrl}/v2/images/${id}`);
      await call("DELETE", `${keystone.url}/projects/${project.id}`);
    },
  };
}
