import { defineConfig } from "vitest/config";

// Whole agent programs; one file at a time, and no test beside another.
export default defineConfig({
  resolve: { conditions: ["heddle-source"] },
  ssr: { resolve: { conditions: ["heddle-source"] } },
  test: {
    include: ["runners/*.test.ts"],
    pool: "forks",
    fileParallelism: false,
    // Only to end what hangs; what has to come in time is measured by itself.
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
});
