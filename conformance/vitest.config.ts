import { defineConfig } from "vitest/config";

/** Two clients write to a stream of their own that an abort has closed, over either program. */
function isDefectOfClient({ stack = "" }: { readonly stack?: string }): boolean {
  return (
    /Controller is already closed/.test(stack) && /node_modules\/ai-sdk-provider-codex-(cli|app-server)\//.test(stack)
  );
}

// The SDK starts whole programs; one file at a time, and no test beside another.
export default defineConfig({
  resolve: { conditions: ["heddle-source"] },
  ssr: { resolve: { conditions: ["heddle-source"] } },
  test: {
    include: ["*.test.ts"],
    pool: "forks",
    fileParallelism: false,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    onUnhandledError: (error) => (isDefectOfClient(error) ? false : undefined),
  },
});
