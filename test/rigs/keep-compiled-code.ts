import { flushCompileCache } from "node:module";
import { afterAll } from "vitest";

// Node writes compiled code to its cache when a process exits. A worker of vitest is ended before it does so.
afterAll(() => flushCompileCache());
