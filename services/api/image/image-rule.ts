/** Under `any`, an unregistered image is accepted without properties. Under `glance`, images are those of Glance. */
export const IMAGE_RULES = ["any", "registered", "glance"] as const;
export type ImageRule = (typeof IMAGE_RULES)[number];
