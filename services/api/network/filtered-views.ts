/** A resource of the Networking API as clients see it. */
export type View = Readonly<Record<string, unknown>>;
export type NetworkQuery = Readonly<Record<string, string | readonly string[]>>;

/**
 * Filters views as Neutron does. A view is kept if each field that the query filters by has one of the query's values. Kept views have only the
 * fields that the query's `fields` names, or all. Parameters that name no field (paging, orders) are ignored: a list ends after its first page.
 */
export function filteredViews(views: readonly View[], query: NetworkQuery): View[] {
  return views.filter((view) => isAsked(view, query)).map((view) => withFields(view, query));
}

/** Returns the fields of a view that the query names, or all. */
export function withFields(view: View, { fields }: NetworkQuery): View {
  if (fields === undefined) return view;
  const asked = new Set([fields].flat());
  return Object.fromEntries(Object.entries(view).filter(([name]) => asked.has(name)));
}

function isAsked(view: View, query: NetworkQuery): boolean {
  return Object.entries(query).every(([name, value]) => {
    const field = Object.hasOwn(view, name) ? view[name] : undefined;
    if (field === undefined || (typeof field === "object" && field !== null)) return true;
    return [value].flat().some((one) => one.toLowerCase() === String(field).toLowerCase());
  });
}
