/** The JSON of a request or an answer. The samples' texts say what is in it, and the scripts read a few of its fields. */
export type Answer = ReturnType<typeof JSON.parse>;
