import { fitsNow, type GroupCounts, type GroupPlacement, place } from "./group-placement.ts";

/**
 * Every way, up to likeness, to put the numbered groups on providers when several may share one (`group_policy=none`).
 *
 * Provider after provider takes a row of counts, one a group; among like providers the rows never rise, so each multiset of
 * rows is met once. Branches are cut when a group has more likes left than the remaining providers could take, or a class
 * less room left than is still needed.
 */
export function* packGroups(placement: GroupPlacement): Generator<GroupCounts> {
  const groupCount = placement.counts.length;
  const counts = new Int32Array(placement.kinds.slots.length * groupCount);
  const state: PackState = { placement, counts, todo: [...placement.counts], rest: restOf(placement) };
  yield* fillProvider(state, 0, 0);
}

interface PackState {
  readonly placement: GroupPlacement;
  readonly counts: Int32Array;
  readonly todo: number[];
  readonly rest: RestBounds;
}

/** What the providers from a given one on could take at most. Row by provider. */
interface RestBounds {
  /** By group: likes, each group looked at by itself. */
  readonly places: Float64Array;
  /** By class: room. */
  readonly room: Float64Array;
}

/** Chooses how many likes of `group` and the groups after it `provider` takes, then goes on to the next provider. */
function* fillProvider(state: PackState, provider: number, group: number): Generator<GroupCounts> {
  const { placement, counts, todo } = state;
  if (!placement.budget.step()) return;
  const groupCount = todo.length;
  if (group === groupCount) {
    if (todo.every((left) => left === 0)) yield counts;
    else if (provider + 1 < placement.kinds.slots.length && canTakeRest(state, provider + 1)) {
      yield* fillProvider(state, provider + 1, 0);
    }
    return;
  }
  const at = provider * groupCount + group;
  const ceiling = Math.min(todo[group]!, ceilingByLike(state, provider, group));
  let most = 0;
  while (most < ceiling && fitsNow(placement, group, provider)) {
    place(placement, group, provider, 1);
    most += 1;
  }
  todo[group] = todo[group]! - most;
  counts[at] = most;
  while (true) {
    yield* fillProvider(state, provider, group + 1);
    if (counts[at] === 0) return;
    place(placement, group, provider, -1);
    counts[at] = counts[at]! - 1;
    todo[group] = todo[group]! + 1;
  }
}

/** A provider's row may not exceed that of the like one before it, read from the left. */
function ceilingByLike({ placement, counts, todo }: PackState, provider: number, group: number): number {
  const { kinds, touched } = placement;
  const before = provider - 1;
  if (before < 0 || kinds.kind[before] !== kinds.kind[provider] || touched[before] || touched[provider])
    return Number.POSITIVE_INFINITY;
  const groupCount = todo.length;
  for (let index = 0; index < group; index += 1) {
    if (counts[provider * groupCount + index]! < counts[before * groupCount + index]!) return Number.POSITIVE_INFINITY;
  }
  return counts[before * groupCount + group]!;
}

function canTakeRest({ placement, todo, rest }: PackState, provider: number): boolean {
  const groupCount = todo.length;
  const { classCount, needs } = placement;
  for (let group = 0; group < groupCount; group += 1) {
    if (todo[group]! > rest.places[provider * groupCount + group]!) return false;
  }
  for (let index = 0; index < classCount; index += 1) {
    let needed = 0;
    for (let group = 0; group < groupCount; group += 1) needed += todo[group]! * needs[group * classCount + index]!;
    if (needed > 0 && needed > rest.room[provider * classCount + index]!) return false;
  }
  return true;
}

function restOf(placement: GroupPlacement): RestBounds {
  const { kinds, room, needs, classCount, counts } = placement;
  const providerCount = kinds.slots.length;
  const groupCount = counts.length;
  const places = new Float64Array((providerCount + 1) * groupCount);
  const restRoom = new Float64Array((providerCount + 1) * classCount);
  for (let provider = providerCount - 1; provider >= 0; provider -= 1) {
    for (let group = 0; group < groupCount; group += 1) {
      let most = fitsNow(placement, group, provider) ? Number.POSITIVE_INFINITY : 0;
      for (let index = 0; index < classCount && most > 0; index += 1) {
        const need = needs[group * classCount + index]!;
        if (need > 0) most = Math.min(most, Math.floor(room[provider * classCount + index]! / need));
      }
      places[provider * groupCount + group] = places[(provider + 1) * groupCount + group]! + most;
    }
    for (let index = 0; index < classCount; index += 1) {
      restRoom[provider * classCount + index] =
        restRoom[(provider + 1) * classCount + index]! + Math.max(0, room[provider * classCount + index]!);
    }
  }
  return { places, room: restRoom };
}
