import path from "node:path";
import { defineConfig } from "vitest/config";

/** Only to end what hangs. */
const LIMIT_MS = 240_000;

export default defineConfig({
  root: path.join(import.meta.dirname, ".."),
  resolve: { conditions: ["heddle-source"] },
  ssr: { resolve: { conditions: ["heddle-source"] } },
  test: {
    include: ["packages/*/src/**/*.postgres.test.ts", "postgres/*.test.ts"],
    globalSetup: path.join(import.meta.dirname, "setup.ts"),
    pool: "forks",
    isolate: false,
    maxWorkers: 3,
    // As `npm test` does; Vitest prints what passed only then.
    retry: 1,
    testTimeout: LIMIT_MS,
    hookTimeout: LIMIT_MS,
    expect: { poll: { timeout: LIMIT_MS / 4 } },
  },
});
