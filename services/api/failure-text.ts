/** The log line about a request that failed. Both APIs write it. */
export function failureText(status: number): string {
  return status === 500
    ? "a request failed with an unexpected error, and its client got a 500"
    : `a request could not be served, and its client got a ${status}`;
}
