import { NetworkingError } from "../../core/stores/networking-error.ts";
import type { NeighbourAnswer } from "./neighbour-client.ts";
import { listedItems } from "./neutron-documents.ts";
import { type DocumentFields, documentFields, textField } from "./read-document.ts";

/** More pages than any list of Berth's has, even if Neutron gives 10 items at a time. */
const PAGES_MAX = 1_000;
/** All pages of a list together: some 40,000 ports. A list has far fewer, and several lists are read at a time. */
const CHARACTERS_MAX = 40_000_000;

/**
 * Reads a whole list of Neutron, which may give it page by page (`pagination_max_limit`). `ask` gets a path with the query of a page, and returns null where
 * Neutron has no such list. Throws a `NetworkingError` if the pages do not end, or are too large together to be kept.
 *
 * Source: https://docs.openstack.org/api-ref/network/v2/#pagination
 */
export async function readPages(
  collection: string,
  path: string,
  query: string,
  ask: (path: string) => Promise<NeighbourAnswer | null>,
): Promise<readonly unknown[] | null> {
  const items: unknown[] = [];
  let characters = 0;
  let page: string | null = query === "" ? "" : `?${query}`;
  for (let pages = 0; page !== null; pages += 1) {
    if (pages === PAGES_MAX)
      throw new NetworkingError("bad-answer", `Neutron's list of ${collection} has more than ${PAGES_MAX} pages`);
    const answer = await ask(`${path}${page}`);
    if (answer === null) return null;
    characters += answer.characters;
    if (characters > CHARACTERS_MAX)
      throw new NetworkingError(
        "bad-answer",
        `Neutron's list of ${collection} has more than ${CHARACTERS_MAX} characters`,
      );
    for (const item of listedItems(answer.body, collection)) items.push(item);
    page = nextPage(answer.body, collection);
  }
  return items;
}

/** The query of the next page, or null after the last one. The rest of the link may name an address that only Neutron's other clients can reach. */
function nextPage(body: unknown, collection: string): string | null {
  const links = (body as DocumentFields)[`${collection}_links`];
  const next = Array.isArray(links) ? links.map(documentFields).find(({ rel }) => rel === "next") : undefined;
  if (next === undefined) return null;
  const url = URL.parse(textField(next.href), "http://neutron");
  if (url === null || url.search === "")
    throw new NetworkingError("bad-answer", `Neutron's list of ${collection} goes on at no address`);
  return url.search;
}
