import { flushCompileCache } from "node:module";
import { afterAll } from "vitest";
// Vitest runs this file for each file of tests, but Node loads what it imports once.
import "./end-with-vitest.ts";

// Node writes compiled code to its cache when a process exits. A worker of vitest is ended before it does so.
afterAll(() => flushCompileCache());
