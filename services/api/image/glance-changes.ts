import type { GlanceClient } from "../../../adapters/openstack/glance-client.ts";
import { NeighbourError } from "../../../adapters/openstack/neighbour-error.ts";
import type {
  ImageCaller,
  ImageFilters,
  ImageProperties,
  ImageRefusal,
} from "../../../core/stores/api/image-service.ts";

/** The filters of a list of images in Glance's names. Source: Glance's api-ref, "List images". */
export function glanceFilters(name: string | null, filters: ImageFilters = {}): Readonly<Record<string, string>> {
  const { status, minDiskGib, minRamMib, changedSinceMs, properties = {} } = filters;
  return {
    ...properties,
    ...(name !== null && { name }),
    ...(status !== undefined && { status }),
    ...(minDiskGib !== undefined && { min_disk: String(minDiskGib) }),
    ...(minRamMib !== undefined && { min_ram: String(minRamMib) }),
    ...(changedSinceMs !== undefined && { updated_at: `gte:${new Date(changedSinceMs).toISOString().slice(0, 19)}Z` }),
  };
}

export async function removeInGlance(
  glance: Pick<GlanceClient, "deleteAs">,
  id: string,
  caller: ImageCaller,
): Promise<{ readonly kind: "removed" } | ImageRefusal> {
  return orRefusal(async () => {
    await glance.deleteAs(id, caller);
    return { kind: "removed" };
  });
}

/** Each property is changed by an operation of its own, so that concurrent changes of other properties stay. */
export async function changeInGlance(
  glance: Pick<GlanceClient, "image" | "setProperties">,
  id: string,
  change: (properties: ImageProperties) => ImageProperties,
  caller: ImageCaller,
): Promise<{ readonly kind: "changed"; readonly properties: ImageProperties } | ImageRefusal> {
  return orRefusal(async () => {
    const image = await glance.image(id, caller);
    if (image === null) return noImage(id);
    const properties = change(image.properties);
    await glance.setProperties(id, { from: image.properties, to: properties }, caller);
    return { kind: "changed", properties };
  });
}

export const noImage = (id: string): ImageRefusal => ({
  kind: "gone",
  why: `No image found with ID ${id.slice(0, 100)}`,
});

async function orRefusal<Outcome>(work: () => Promise<Outcome>): Promise<Outcome | ImageRefusal> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof NeighbourError)) throw error;
    const { why } = error;
    if (error.code === "not-found") return { kind: "gone", why };
    if (error.status === 403) return { kind: "forbidden", why };
    if (error.code === "conflict") return { kind: "conflict", why };
    throw error;
  }
}
