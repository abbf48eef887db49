// Finds sections that have all the words that were typed. The index is loaded at the first key.
const input = document.querySelector("#words");
const list = document.querySelector("#found");
const root = input.form.dataset.root;
const SHOWN_MAX = 12;
let index = null;

input.form.addEventListener("submit", (event) => event.preventDefault());
input.addEventListener("input", async () => {
  index ??= fetch(`${root}/search.json`).then((answer) => answer.json());
  const sections = await index;
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = words.length === 0 ? [] : sections.map((section) => [score(section, words), section]);
  const best = found.filter(([points]) => points > 0).sort(([one], [other]) => other - one);
  list.replaceChildren(...best.slice(0, SHOWN_MAX).map(([, section]) => entryOf(section)));
});

/** Zero unless every word occurs. Words of a heading count more. */
function score({ page, heading, text }, words) {
  const [title, body] = [`${page} ${heading}`.toLowerCase(), text.toLowerCase()];
  let points = 0;
  for (const word of words) {
    const own = (title.includes(word) ? 10 : 0) + (body.includes(word) ? 1 : 0);
    if (own === 0) return 0;
    points += own;
  }
  return points;
}

function entryOf({ page, heading, address }) {
  const [item, link] = [document.createElement("li"), document.createElement("a")];
  link.href = `${root}/${address}`;
  link.textContent = page === heading ? page : `${page}: ${heading}`;
  item.append(link);
  return item;
}
