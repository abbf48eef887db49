/** Under `any`, an unregistered image is accepted without properties. */
export const IMAGE_RULES = ["any", "registered"] as const;
export type ImageRule = (typeof IMAGE_RULES)[number];
