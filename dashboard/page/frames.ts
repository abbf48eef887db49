/** Jobs of one frame, beside which the browser still has time to paint them. */
const JOBS_PER_FRAME = 20;

const waiting = new Set<() => void>();
let isAsked = false;

/**
 * Runs the job in one of the next frames, once, however often it is asked for until then. So a change that touches all cells is
 * drawn over several frames, and none of them is lost. In a hidden tab nothing is drawn.
 */
export function inALaterFrame(job: () => void): void {
  waiting.add(job);
  ask();
}

function ask(): void {
  if (isAsked || waiting.size === 0) return;
  isAsked = true;
  requestAnimationFrame(() => {
    isAsked = false;
    for (const job of [...waiting].slice(0, JOBS_PER_FRAME)) {
      waiting.delete(job);
      job();
    }
    ask();
  });
}
