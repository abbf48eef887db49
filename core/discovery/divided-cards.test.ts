import { expect, test } from "vitest";
import type { MdevType, PciDevice } from "./discover-pci.ts";
import { dividedCards, type MdevOffer } from "./divided-cards.ts";
import { NO_DEVICE } from "./some-host.ts";

/** As NVIDIA's driver describes a type, in one line. */
const NVIDIA = "num_heads=4, frl_config=60, framebuffer=1024M, max_resolution=5120x2880, max_instance=16";
/** As Intel's driver describes one, in several lines. */
const INTEL = "low_gm_size: 64MB\nhigh_gm_size: 384MB\nfence: 4\nresolution: 1024x768\nweight: 2";

const type = (name: string, changes: Partial<MdevType> = {}): MdevType => ({
  ...{ type: name, name: null, deviceApi: "vfio-pci", description: null, available: 4, existing: 0 },
  ...changes,
});
const card = (address: string, ...mdevTypes: readonly MdevType[]): PciDevice => ({ ...NO_DEVICE, address, mdevTypes });
const offer = (name: string, changes: Partial<MdevOffer> = {}): MdevOffer => ({
  ...{ type: name, resourceClass: "VGPU", traits: [], instancesMax: null, addresses: [] },
  ...changes,
});
function offered(devices: readonly PciDevice[], ...offers: readonly MdevOffer[]) {
  const warnings: string[] = [];
  const cards = dividedCards(devices, offers, (warning) => void warnings.push(warning));
  const totals = Object.fromEntries(
    [...cards].map(([address, { inventories }]) => [
      address,
      Object.entries(inventories).map(([name, { total }]) => `${name} ${total}`),
    ]),
  );
  return { cards, totals, warnings };
}

test.each([
  ["NVIDIA's driver names", NVIDIA, ["VGPU 4", "VGPU_DISPLAY_HEAD 16"]],
  ["it names at the end", "framebuffer=1024M, num_heads=2", ["VGPU 4", "VGPU_DISPLAY_HEAD 8"]],
  ["it has none of", "num_heads=0, frl_config=60", ["VGPU 4"]],
  ["Intel's driver does not name", INTEL, ["VGPU 4"]],
  ["a number follows that is none", "num_heads=four", ["VGPU 4"]],
  ["no description tells", null, ["VGPU 4"]],
])("a card has the displays of all its devices: those that %s", (_, description, totals) => {
  expect(offered([card("a", type("t", { description }))], offer("t")).totals).toEqual({ a: totals });
});

test("a type gives its cards its class and its traits", () => {
  const cards = offered(
    [card("a", type("t", { description: NVIDIA }))],
    offer("t", { resourceClass: "CUSTOM_BIG", traits: ["CUSTOM_A100"] }),
  ).cards;
  expect(cards.get("a")).toEqual({
    ...{ type: "t", resourceClass: "CUSTOM_BIG", traits: ["CUSTOM_A100"], heads: 4 },
    inventories: { CUSTOM_BIG: { total: 4 }, VGPU_DISPLAY_HEAD: { total: 16 } },
  });
});

test("a card that a type names is divided into it, and any other one into the first type without cards of its own that it supports", () => {
  const both = [type("big"), type("small", { available: 8 })];
  const devices = [card("a", ...both), card("b", ...both), card("c", type("other"))];
  const { totals, warnings } = offered(devices, offer("big", { addresses: ["b"] }), offer("small"));
  expect(totals).toEqual({ a: ["VGPU 8"], b: ["VGPU 4"] });
  expect(warnings).toEqual([]);
});

test("a card that is named for a type that it does not have is not offered at all", () => {
  const { totals, warnings } = offered([card("a", type("t"))], offer("big", { addresses: ["a"] }), offer("t"));
  expect(totals).toEqual({ a: [] });
  expect(warnings).toEqual(["mdev-device-addresses divides a into big, which it does not support: it is not offered"]);
});

test("the limit of a type holds for all cards together, and a card's share stays when guests get devices", () => {
  const limited = offer("t", { instancesMax: 6 });
  const three = (...made: readonly number[]) =>
    offered(
      made.map((existing, index) => card("abc"[index]!, type("t", { existing, available: 4 - existing }))),
      limited,
    ).totals;
  expect(three(0, 0, 0)).toEqual({ a: ["VGPU 4"], b: ["VGPU 2"], c: [] });
  for (const made of [
    [1, 0, 0],
    [0, 2, 0],
    [4, 2, 0],
  ] as const)
    expect(three(...made)).toEqual(three(0, 0, 0));
  // Devices that were there before the limit come first.
  expect(three(0, 0, 3)).toEqual({ a: ["VGPU 3"], b: [], c: ["VGPU 3"] });
  expect(three(4, 4, 0)).toEqual({ a: ["VGPU 4"], b: ["VGPU 2"], c: [] });
});

test("the limit of one type does not count the devices of another", () => {
  const devices = [card("a", type("t", { existing: 3 }), type("u")), card("b", type("u"))];
  const { totals } = offered(devices, offer("u", { instancesMax: 5, addresses: ["b"] }), offer("t"));
  expect(totals).toEqual({ a: ["VGPU 7"], b: ["VGPU 4"] });
});

test("a card whose numbers are unknown is not reported, and takes nothing of the limit", () => {
  const devices = [card("a", type("t", { available: null })), card("b", type("t"))];
  const { totals, warnings } = offered(devices, offer("t", { instancesMax: 2 }));
  expect(totals).toEqual({ a: [], b: ["VGPU 2"] });
  expect(warnings).toEqual(["t of a is not reported: the number that exists or can be created is unknown"]);
});
