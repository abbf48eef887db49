import { posix } from "node:path";
import { Marked, type Tokens } from "marked";
import { HeadingIds } from "./heading-ids.ts";
import type { PageSource } from "./sources.ts";

export interface SiteLink {
  readonly href: string;
  /** The target of the link, as a path in the clone. Null for an address elsewhere. */
  readonly target: string | null;
  readonly fragment: string;
}

/** A part of a page, from one heading to the next, for the search. */
export interface SiteSection {
  readonly id: string;
  readonly heading: string;
  readonly text: string;
}

export interface RenderedPage {
  readonly path: string;
  readonly title: string;
  readonly html: string;
  readonly ids: ReadonlySet<string>;
  readonly links: readonly SiteLink[];
  readonly sections: readonly SiteSection[];
}

/** Renders Markdown. `addressOf` returns the address of a path in the clone, relative to the page, or null if the site has no such page or file. */
export function renderPage(
  { path, markdown }: PageSource,
  addressOf: (from: string, target: string) => string | null,
): RenderedPage {
  const ids = new HeadingIds();
  const links: SiteLink[] = [];
  const sections: { id: string; heading: string; text: string }[] = [];
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth }: Tokens.Heading): string {
        const heading = textOf(tokens as readonly Tokens.Generic[]);
        const id = ids.idOf(heading);
        sections.push({ id, heading, text: "" });
        return `<h${depth} id="${id}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
      },
      code: (token) => remember([token]) ?? false,
      paragraph: ({ tokens }) => remember(tokens) ?? false,
      tablecell: ({ tokens }) => remember(tokens) ?? false,
      text: (token) => ("tokens" in token ? remember(token.tokens ?? []) : undefined) ?? false,
    },
    walkTokens: (token) => {
      if (token.type === "link" || token.type === "image") token.href = follow(token.href as string);
    },
  });

  /** Adds words to the section that is being rendered, and leaves the rendering as it is. */
  function remember(tokens: readonly Tokens.Generic[]): undefined {
    const section = sections.at(-1);
    if (section !== undefined) section.text += ` ${textOf(tokens)}`;
  }

  function follow(href: string): string {
    if (/^[a-z]+:/.test(href)) {
      links.push({ href, target: null, fragment: "" });
      return href;
    }
    const [file = "", fragment = ""] = href.split("#");
    const target = file === "" ? path : posix.join(posix.dirname(path), file).replace(/\/$/, "");
    links.push({ href, target, fragment });
    const address = file === "" ? "" : (addressOf(path, target) ?? file);
    return fragment === "" ? address : `${address}#${fragment}`;
  }

  const html = marked.parse(markdown, { async: false });
  return { path, title: sections[0]?.heading ?? path, html, ids: ids.given, links, sections };
}

/** The words of inline tokens, without their marks. */
function textOf(tokens: readonly Tokens.Generic[]): string {
  return tokens
    .map((token) => (token["tokens"] ? textOf(token["tokens"] as Tokens.Generic[]) : ((token["text"] as string) ?? "")))
    .join("");
}
