import { type Trait, trait } from "./ids.ts";

/** The trait of a provider that has vanished from its host and is kept because servers use it. */
export const VANISHED: Trait = trait("CUSTOM_BERTH_VANISHED");

/**
 * Whether a trait on a provider that an agent reports belongs to the agent, which may add and remove it, whoever has set it. These traits
 * describe CPUs and drivers. Nova's agents own the same traits. Every other trait is the agent's only if the agent has reported it.
 */
export function isAgentsTrait(name: Trait): boolean {
  return name === VANISHED || /^(COMPUTE_|HW_CPU_|HW_ARCH_)/.test(name);
}
