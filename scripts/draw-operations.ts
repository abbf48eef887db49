import { writeFileSync } from "node:fs";
import { operationsPage } from "../core/tasks/draw-operations.ts";

writeFileSync(new URL("../docs/operations.md", import.meta.url), operationsPage());
