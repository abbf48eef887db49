import { trait } from "../../ledger/ids.ts";
import type { Asked } from "./asked.ts";
import { contradiction, hardwareRequest } from "./hardware-request.ts";
import { guestNodes } from "./numa-nodes.ts";
import { badExtraSpec, badImageProperty, type NamedValue, type RequestRefusal } from "./request-refusal.ts";
import type { TranslationRule } from "./translation-rule.ts";

const KIB_PER_UNIT: Readonly<Record<string, number>> = { "": 1, KB: 1, MB: 1024, GB: 1024 ** 2 };
/** The size of ordinary pages, which MEMORY_MB already counts. */
const SMALL_PAGE_KIB = 4;
const LARGE_PAGES = "CUSTOM_MEMORY_PAGES_LARGE";
const ALLOWED = "small, large, any, or a size like 2048, 2MB or 1GB";

/** The resource class of memory pages of one size. */
export function pageClass(pageKib: number): string {
  return `CUSTOM_MEMORY_PAGES_${pageKib}KB`;
}

/**
 * Reads `hw:mem_page_size`. MEMORY_MB counts all of a host's memory including that in huge pages, and every guest's memory once, as in
 * Nova. Pages of one size are a second limit, which hosts keep in Nova and the ledger keeps here: each NUMA node has its own inventory of
 * CUSTOM_MEMORY_PAGES_<KiB>KB. `large` leaves the size open and requires the trait CUSTOM_MEMORY_PAGES_LARGE. `small` and `any` add
 * nothing. An image may choose a size only when the flavor says large or any.
 */
export const memoryPages: TranslationRule = (asked, draft) => {
  const said = readPageSize(asked);
  if (said === null) return null;
  if ("kind" in said) return said;
  const { value } = said;
  if (value === "small" || value === "any") return null;
  const read = guestNodes(asked);
  const nodes =
    read.kind === "nodes" && read.nodes.length > 0 ? read.nodes : [{ suffix: "", memoryMib: asked.flavor.memoryMib }];
  if (value === "large") {
    for (const { suffix } of nodes) draft.group(suffix).required.add(trait(LARGE_PAGES));
    return null;
  }
  const pageKib = pageSizeKib(value);
  if (pageKib === null) return refuse(said, ALLOWED);
  if (pageKib <= SMALL_PAGE_KIB) return null;
  for (const { suffix, memoryMib } of nodes) {
    if ((memoryMib * 1024) % pageKib !== 0)
      return refuse(said, `a size that divides the memory of a NUMA node (${memoryMib} MiB)`);
    draft.add(suffix, pageClass(pageKib), (memoryMib * 1024) / pageKib);
  }
  return null;
};

/**
 * The pages that a guest asks for. `pageKib` is null when the host chooses the size, of huge pages alone if `isLarge`. Null when nothing, or nothing
 * valid, is asked for.
 */
export function requestedPages(asked: Asked): { readonly pageKib: number | null; readonly isLarge: boolean } | null {
  const said = readPageSize(asked);
  if (said === null || "kind" in said) return null;
  const { value } = said;
  return { pageKib: value === "small" ? SMALL_PAGE_KIB : pageSizeKib(value), isLarge: value === "large" };
}

function readPageSize(asked: Asked): NamedValue | RequestRefusal | null {
  const { flavor, image } = hardwareRequest(asked, "mem_page_size");
  if (!flavor)
    return (
      image && badImageProperty(image.key, image.value, "left out unless the flavor's hw:mem_page_size is large or any")
    );
  if (!isPageSize(flavor.value)) return badExtraSpec(flavor.key, flavor.value, ALLOWED);
  if (!image) return flavor;
  if (!isPageSize(image.value)) return badImageProperty(image.key, image.value, ALLOWED);
  if (flavor.value === "large" || flavor.value === "any") return image;
  return contradiction(flavor, image, "an image may choose the size only if the flavor says large or any");
}

function isPageSize(value: string): boolean {
  return ["small", "large", "any"].includes(value) || pageSizeKib(value) !== null;
}

function pageSizeKib(value: string): number | null {
  const [, digits, unit = ""] = /^([1-9]\d{0,9})\s*(KB|MB|GB)?$/i.exec(value.trim()) ?? [];
  return digits === undefined ? null : Number(digits) * (KIB_PER_UNIT[unit.toUpperCase()] ?? 1);
}

function refuse({ key, value }: NamedValue, allowed: string): RequestRefusal {
  return key.startsWith("hw:") ? badExtraSpec(key, value, allowed) : badImageProperty(key, value, allowed);
}
