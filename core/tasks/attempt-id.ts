/** The task and the selection that an attempt belongs to; the inverse of `attemptIdOf`. Null when the id has another form. */
export function parseAttemptId(attemptId: string): { readonly taskId: string; readonly selection: number } | null {
  const slash = attemptId.lastIndexOf("/");
  if (slash <= 0) return null;
  const digits = attemptId.slice(slash + 1);
  if (!/^\d{1,6}$/.test(digits)) return null;
  return { taskId: attemptId.slice(0, slash), selection: Number(digits) };
}
