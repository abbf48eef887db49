export function numberText(value: number): string {
  return value.toLocaleString("en", { maximumFractionDigits: value < 10 ? 1 : 0 });
}

export function percentText(used: number, capacity: number): string {
  return capacity <= 0 ? "–" : `${Math.round((100 * used) / capacity)} %`;
}

export function timeText(at: number | string): string {
  return new Date(at).toISOString().slice(11, 23);
}

/** MEMORY_MB → Memory (MB). */
export function classText(name: string): string {
  const [known] = Object.entries({
    VCPU: "vCPU",
    PCPU: "Pinned CPU",
    MEMORY_MB: "Memory",
    DISK_GB: "Disk",
    VGPU: "vGPU",
  })
    .filter(([key]) => key === name)
    .map(([, text]) => text);
  return known ?? name;
}

export function byName<Item>(nameOf: (item: Item) => string): (a: Item, b: Item) => number {
  const order = new Intl.Collator("en", { numeric: true });
  return (a, b) => order.compare(nameOf(a), nameOf(b));
}

/** 1 server, 2 servers. */
export function countText(count: number, noun: string): string {
  return `${numberText(count)} ${noun}${count === 1 ? "" : "s"}`;
}
