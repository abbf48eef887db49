import { expect, test } from "vitest";
import { makeSysroot, numaNode } from "../../test/rigs/made-up-sysroot.ts";
import { checkHugePages } from "./check-huge-pages.ts";

const pinning = (changes: object = {}) => ({
  ...{ vcpus: [], held: [], emulator: [], isBound: true, pageKib: 2_048 },
  memory: [
    { memoryMib: 64, hostNode: 0 },
    { memoryMib: 32, hostNode: 1 },
  ],
  ...changes,
});
const host = (first: number, second: number) =>
  makeSysroot(numaNode(0, "0", 1_024, { 2048: first }), numaNode(1, "1", 1_024, { 2048: second }), {
    "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages": `${first + second}\n`,
  });

test("a guest starts when each of its nodes has enough free huge pages, and when the host does not say how many it has", () => {
  checkHugePages(pinning(), host(32, 16));
  checkHugePages(pinning({ isBound: false }), host(48, 0));
  checkHugePages(pinning({ pageKib: null }), host(0, 0));
  checkHugePages(pinning({ pageKib: 1_048_576 }), host(0, 0));
});

test("a guest whose pages the host lacks is refused with their number and place", () => {
  const refused = (changes: object, root: string) => expect(() => checkHugePages(pinning(changes), root));
  refused({}, host(32, 15)).toThrow(
    "the guest needs 16 huge pages of 2048 KiB on NUMA node 1, and the host has 15 free ones: raise nr_hugepages",
  );
  refused({ isBound: false }, host(40, 7)).toThrow("the guest needs 48 huge pages of 2048 KiB, and the host has 47");
});
