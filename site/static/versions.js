// Offers the other versions of the documentation that lie beside this one. Where there are none, or the pages are opened as files, nothing changes.
const place = document.querySelector("#version");
const root = new URL(`${place.dataset.root}/`, location.href);
const own = place.textContent;

fetch(new URL("../versions.json", root))
  .then((answer) => (answer.ok ? answer.json() : []))
  .then(offer, () => undefined);

function offer(versions) {
  if (versions.length < 2 || !versions.includes(own)) return;
  const choice = document.createElement("select");
  choice.setAttribute("aria-label", "Version");
  for (const version of versions) choice.append(new Option(version, version, version === own, version === own));
  choice.addEventListener("change", () => go(choice.value));
  place.replaceChildren(choice);
}

/** Goes to the same page of the other version, or to its first page if it does not have this one. */
async function go(version) {
  const page = location.href.slice(root.href.length);
  const other = new URL(`../${version}/`, root);
  const same = new URL(page, other);
  const answer = await fetch(same, { method: "HEAD" }).catch(() => null);
  location.href = answer?.ok ? same : new URL("index.html", other);
}
