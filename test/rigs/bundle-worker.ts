import { inject } from "vitest";

// What starts services of this working tree in this process starts them from the bundle.
process.env.BERTH_BUNDLE = inject("berthBundle");
