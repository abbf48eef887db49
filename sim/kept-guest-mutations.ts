import { ATTACHING, DETACHING } from "../core/tasks/operation-routes.ts";

/** Bugs about the guest that the source keeps until a move is confirmed or reverted. */
export const KEPT_GUEST_MUTATIONS = [
  {
    name: "kept-guest-forgotten",
    about: "while a move waits for its confirmation, volumes change at its destination alone",
    profile: "volumes",
    routes: { "attach-volume-unconfirmed": ATTACHING, "detach-volume-unconfirmed": DETACHING },
  },
] as const;
