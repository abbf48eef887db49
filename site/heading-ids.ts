/** Gives the headings of a page the ids that code hosts give them, so that links to them work there and on the site. */
export class HeadingIds {
  readonly given = new Set<string>();

  idOf(heading: string): string {
    const plain = heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\p{M}\p{Pc}\- ]/gu, "")
      .replaceAll(" ", "-");
    let id = plain;
    for (let copy = 1; this.given.has(id); copy += 1) id = `${plain}-${copy}`;
    this.given.add(id);
    return id;
  }
}
