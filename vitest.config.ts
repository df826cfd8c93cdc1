import { defineConfig } from "vitest/config";

const ALONE = "{packages/*/src,e2e}/**/*.alone.test.ts";

// Workspace packages are entered from source through the private export condition, so tests need no build.
const resolve = { conditions: ["heddle-source"] };
const ssr = { resolve: { conditions: ["heddle-source"] } };

export default defineConfig({
  test: {
    projects: [
      {
        resolve,
        ssr,
        test: {
          name: "unit",
          include: ["packages/*/src/**/*.test.ts", "scripts/**/*.test.ts"],
          exclude: ["**/*.proc.test.ts", ALONE],
          pool: "threads",
          isolate: false,
          sequence: { groupOrder: 1 },
          testTimeout: 15_000,
        },
      },
      {
        resolve,
        ssr,
        test: {
          // Tests that own processes, namespaces or whole homes spend half of their time waiting for them.
          name: "proc",
          include: ["packages/*/src/**/*.proc.test.ts", "scripts/**/*.proc.test.ts", "e2e/**/*.test.ts"],
          exclude: [ALONE],
          pool: "forks",
          maxWorkers: 2,
          // After the unit tests, never beside them.
          sequence: { groupOrder: 2 },
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        resolve,
        ssr,
        test: {
          // Tests that measure time or memory, or keep every core busy by themselves.
          name: "alone",
          include: [ALONE],
          pool: "forks",
          fileParallelism: false,
          sequence: { groupOrder: 3 },
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
    ],
  },
});
