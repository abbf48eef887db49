/** `any`: an image that nobody registered is taken on trust, and has no properties. */
export const IMAGE_RULES = ["any", "registered"] as const;
export type ImageRule = (typeof IMAGE_RULES)[number];
