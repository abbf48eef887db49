/** Nova's message for a request that found no host. */
const NO_HOST = "No valid host was found. There are not enough hosts available.";

/** Beginnings of faults that name hosts or cells or quote drivers, each with the text that the owner of the server reads instead. */
const HIDDEN: readonly (readonly [beginning: string, shown: string])[] = [
  ["No valid host was found.", NO_HOST],
  [
    "No valid host: ",
    "No valid host was found. Exceeded maximum number of retries: every host that was tried failed or had no room left.",
  ],
  [
    "Build failed on ",
    "The build of the server failed on its host in a way that another host would not change. Check the image and the flavor.",
  ],
  [
    "The request was given up after ",
    "The request was given up: it could not be placed for too long. Delete the server and create it again.",
  ],
  ["Another client has allocations ", "The request was given up: the server's id is in use."],
];

/** The end of a fault about other servers of the same call, which the caller owns. */
const OF_THE_CALL = / Only \d+ of at least \d+ servers of this call found a host, so all of them were released\.$/;

/**
 * The text that replaces other faults of a cell, since they may quote a host. Other faults of the scheduler are shown unchanged, as they
 * concern only the request.
 */
const FROM_A_HOST = "The operation failed on the server's host. An administrator can read the details.";

/**
 * Returns a fault as the owner of a server reads it, without the names of hosts and cells and without the words of drivers. Admins read the
 * full text. `saidBy` is the scheduler for requests that no cell accepted, else the cell.
 *
 * Source: `_get_fault` of nova's servers view, which shows details to admins only.
 */
export function ownerFault(message: string, saidBy: "scheduler" | "cell"): string {
  const hidden = HIDDEN.find(([beginning]) => message.startsWith(beginning));
  if (hidden !== undefined) return `${hidden[1]}${OF_THE_CALL.exec(message)?.[0] ?? ""}`;
  return saidBy === "scheduler" ? message : FROM_A_HOST;
}
