import type { FakeAnswer } from "./fake-neighbour.ts";

/** An error of Neutron. */
export const neutronRefusal = (status: number, type: string, message: string): FakeAnswer => ({
  status,
  body: { NeutronError: { type, message, detail: "" } },
});
