import { CannotHarmError, type ChaosCloud, isServer, type Link, type Part, type Way } from "./chaos-cloud.ts";
import { type Holds, holdsOn, type LinkDeed } from "./holds.ts";
import type { FaultStep } from "./plan.ts";
import { linksMeant, partsMeant } from "./select.ts";

/**
 * One fault that is injected into a cloud and undone again. When several act on one target at the same time, each undoes only its own
 * effect.
 */
export interface Harm {
  /** Description of the target for people. */
  readonly target: string;
  begin(): Promise<void>;
  /** Undoes the harm, even after a `begin` that failed half-way. */
  end(): Promise<void>;
}

export interface HarmContext {
  readonly cloud: ChaosCloud;
  readonly random: () => number;
  /** Sets the share of the builds that fail from now on. */
  setFailShare(share: number): void;
  /** Resolves after `ms`, or when the run is broken off. */
  pause(ms: number): Promise<void>;
  /** Aborted when the run is broken off; then nothing has to be repaired. */
  readonly signal: AbortSignal;
}

const RESTART_EVERY_MS = 500;
const FLUSH_EVERY_MS = 1_000;

/** The harm that a step of a plan does this time, or null when no target is left. */
export function harmOf(step: FaultStep, context: HarmContext): Harm | null {
  const { cloud } = context;
  switch (step.fault) {
    case "kill":
      return overParts(picked(step, context), (parts) => killing(parts, context));
    case "kill-all":
      return overParts(
        cloud.parts.filter((part) => part.running),
        (parts) => ({ ...killing(parts, context), target: "everything" }),
      );
    case "pause":
      return overParts(picked(step, context), (parts) => pausing(parts, context));
    case "disk-full":
      return overParts(picked(step, context), (parts) => fillingDisks(parts, context));
    case "failover":
      return overParts(
        picked(step, context, ({ cell }) => cell !== null),
        (parts) => {
          const cells = parts.flatMap(({ cell }) => cell ?? []);
          return {
            target: namesOf(parts),
            begin: () => eachOf(cells, (cell) => cloud.failover(cell)),
            end: () => eachOf(context.signal.aborted ? [] : cells, (cell) => cloud.restoreStandby(cell)),
          };
        },
      );
    case "cut":
      return overLinks(step, context, { kind: "cut", way: step.way });
    case "slow":
      return overLinks(step, context, { kind: "slow", ms: step.delayMs });
    case "fail-builds":
      return failingBuilds(step.share, context);
    case "redis-flush":
      return flushing(context);
    default:
      return step.fault satisfies never;
  }
}

/** Picks parts that run and are not harmed yet at random, as many as the step says. */
function picked(
  { target, pick }: FaultStep,
  { cloud, random }: HarmContext,
  isFit: (part: Part) => boolean = () => true,
): readonly Part[] {
  if (target.kind !== "parts") return [];
  const whole = partsMeant(target.which, cloud.parts).filter((part) => part.running && isFit(part));
  return pick === "all" ? whole : sample(whole, pick, random);
}

function overParts(parts: readonly Part[], make: (parts: readonly Part[]) => Harm): Harm | null {
  return parts.length === 0 ? null : make(parts);
}

function overLinks(step: FaultStep, context: HarmContext, deed: LinkDeed): Harm | null {
  const { target, pick } = step;
  if (target.kind !== "links") return null;
  const meant = linksMeant(target.from, target.to, context.cloud.links);
  const sources = [...new Set(meant.map(({ from }) => from.name))];
  const chosen = pick === "all" ? sources : sample(sources, pick, context.random);
  const links = meant.filter(({ from }) => chosen.includes(from.name));
  if (links.length === 0) return null;
  const way = step.way === "both" ? "" : ` (${step.way})`;
  const held = holdsOn(context.cloud).links;
  return {
    target: `${chosen.join(", ")} → ${[...new Set(links.map(({ to }) => to.name))].join(", ")}${way}`,
    begin: () => heldOver({ held, targets: links, deed }, harmLink),
    end: () => eachOf(links, (link) => endOnLink(link, deed, held.remove(link, deed))),
  };
}

/** Puts the link into the state that results from all of these effects. */
async function harmLink(link: Link, deeds: readonly LinkDeed[]): Promise<void> {
  const [way, ...others] = new Set(deeds.flatMap((deed): Way[] => (deed.kind === "cut" ? [deed.way] : [])));
  const delays = deeds.flatMap((deed) => (deed.kind === "slow" ? [deed.ms] : []));
  if (way !== undefined) await link.cut(others.length === 0 ? way : "both");
  if (delays.length > 0) await link.slow(Math.max(...delays));
}

async function endOnLink(link: Link, ended: LinkDeed, left: readonly LinkDeed[]): Promise<void> {
  if (!left.some(({ kind }) => kind === ended.kind)) {
    // Healing a link that is still cut would release the data that it holds back.
    if (ended.kind === "slow" && left.length > 0) return link.slow(0);
    await link.heal();
  }
  await harmLink(link, left);
}

function killing(parts: readonly Part[], { pause, signal }: HarmContext): Harm {
  return {
    target: namesOf(parts),
    begin: () => eachOf(parts, (part) => part.kill()),
    // Servers start before the parts that use them. Each start is retried, as by a supervisor.
    end: async () => {
      const start = async (part: Part) => {
        while (!part.running && !signal.aborted) {
          try {
            await part.start();
            return;
          } catch {
            await pause(RESTART_EVERY_MS);
          }
        }
      };
      await eachOf(parts.filter(isServer), start);
      await eachOf(parts, start);
    },
  };
}

function pausing(parts: readonly Part[], { cloud }: HarmContext): Harm {
  const held = holdsOn(cloud).paused;
  const deed = {};
  return {
    target: namesOf(parts),
    begin: () =>
      eachOf(parts, (part) => {
        held.add(part.name, deed);
        return part.pause();
      }),
    end: () =>
      eachOf(parts, async (part) => {
        if (held.remove(part.name, deed).length === 0 && part.running) await part.resume();
      }),
  };
}

function fillingDisks(parts: readonly Part[], { cloud }: HarmContext): Harm {
  const held = holdsOn(cloud).fullDisks;
  const deed = {};
  const targets = parts.map(({ name }) => name);
  return {
    target: namesOf(parts),
    begin: () => heldOver({ held, targets, deed }, (name) => cloud.fillDisk(name)),
    end: () =>
      eachOf(targets, async (name) => {
        if (held.remove(name, deed).length === 0) await cloud.freeDisk(name);
      }),
  };
}

function failingBuilds(share: number, { cloud, setFailShare }: HarmContext): Harm {
  const held = holdsOn(cloud).failingBuilds;
  const deed = { share };
  return {
    target: "hosts",
    begin: async () => {
      held.add("hosts", deed);
      setFailShare(share);
    },
    end: async () => setFailShare(held.remove("hosts", deed).at(-1)?.share ?? 0),
  };
}

/** Applies the harm to each target. A target that cannot do the harm is not recorded as harmed. */
async function heldOver<Target, Deed extends object>(
  {
    held,
    targets,
    deed,
  }: { readonly held: Holds<Target, Deed>; readonly targets: readonly Target[]; readonly deed: Deed },
  act: (target: Target, all: readonly Deed[]) => Promise<unknown>,
): Promise<void> {
  try {
    await eachOf(targets, (target) => act(target, held.add(target, deed)));
  } catch (error) {
    if (error instanceof CannotHarmError) for (const target of targets) held.remove(target, deed);
    throw error;
  }
}

/** Flushes Redis once a second until the fault ends. */
function flushing({ cloud, pause }: HarmContext): Harm {
  let over = false;
  let beating: Promise<void> = Promise.resolve();
  const beat = async () => {
    while (!over) {
      await pause(FLUSH_EVERY_MS);
      // A Redis that is down has lost its content anyway.
      await cloud.flushRedis().catch(() => undefined);
    }
  };
  return {
    target: "redis",
    begin: async () => {
      await cloud.flushRedis();
      beating = beat();
    },
    end: async () => {
      over = true;
      await beating;
    },
  };
}

function sample<Value>(from: readonly Value[], count: number, random: () => number): readonly Value[] {
  const left = [...from];
  return Array.from(
    { length: Math.min(count, left.length) },
    () => left.splice(Math.floor(random() * left.length), 1)[0]!,
  );
}

async function eachOf<Value>(values: readonly Value[], act: (value: Value) => Promise<unknown>): Promise<void> {
  await Promise.all(values.map(act));
}

function namesOf(parts: readonly Part[]): string {
  return parts.map(({ name }) => name).join(", ");
}
