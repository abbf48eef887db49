/** Whether a guest in this state runs, from whatever disk. The fourth law counts such guests. */
export function runsNow(state: string): boolean {
  return state === "running" || state === "rescued";
}
