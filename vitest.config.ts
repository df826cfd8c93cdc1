import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

const ALONE = "{packages/*/src,e2e}/**/*.alone.test.ts";
const BROWSER = "e2e/browser/**/*.test.ts";
const PROGRAM = "./scripts/test-program.ts";
const COST = "./scripts/test-cost.ts";
/** More than there are cores: tests spend more than half of their time waiting for processes, disks and time limits. */
const WORKERS = Math.max(2, Math.ceil(availableParallelism() * 2.5));
/** Only to end what hangs: on a busy machine a test takes ten times as long as on a quiet one. */
const LIMIT_MS = 240_000;
/** What is waited for comes, unless something hangs. */
const EXPECT = { poll: { timeout: LIMIT_MS / 4 } };

// Workspace packages are entered from source through the private export condition, so tests need no build.
const resolve = { conditions: ["heddle-source"] };
const ssr = { resolve: { conditions: ["heddle-source"] } };

/** Whole programs first: the longest files are among them, and one of those at the end would leave cores idle. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const bySize = await super.sort(files);
    const isWhole = ({ moduleId }: TestSpecification): boolean => moduleId.includes("/e2e/");
    return [...bySize.filter(isWhole), ...bySize.filter((file) => !isWhole(file))];
  }
}

export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        resolve,
        ssr,
        test: {
          name: "unit",
          setupFiles: COST,
          include: ["{packages,apps}/*/src/**/*.test.ts", "scripts/**/*.test.ts"],
          exclude: ["**/*.proc.test.ts", "**/*.postgres.test.ts", ALONE],
          pool: "threads",
          isolate: false,
          maxWorkers: WORKERS,
          sequence: { groupOrder: 1 },
          testTimeout: LIMIT_MS,
          hookTimeout: LIMIT_MS,
          expect: EXPECT,
        },
      },
      {
        resolve,
        ssr,
        test: {
          // Tests that own processes, namespaces or whole homes.
          name: "proc",
          setupFiles: COST,
          globalSetup: PROGRAM,
          include: ["packages/*/src/**/*.proc.test.ts", "scripts/**/*.proc.test.ts", "e2e/**/*.test.ts"],
          exclude: [ALONE, BROWSER],
          pool: "forks",
          // A process for each file would load the same modules two hundred times.
          isolate: false,
          maxWorkers: WORKERS,
          // After the unit tests, never beside them.
          sequence: { groupOrder: 2 },
          testTimeout: LIMIT_MS,
          hookTimeout: LIMIT_MS,
          expect: EXPECT,
        },
      },
      {
        resolve,
        ssr,
        test: {
          // Tests that measure time or memory, or keep every core busy by themselves.
          name: "alone",
          setupFiles: COST,
          globalSetup: PROGRAM,
          include: [ALONE],
          pool: "forks",
          fileParallelism: false,
          sequence: { groupOrder: 3 },
          testTimeout: LIMIT_MS,
          hookTimeout: LIMIT_MS,
          expect: EXPECT,
        },
      },
      {
        resolve,
        ssr,
        test: {
          // The dashboard in a real browser; only with --browser, because a run without it needs no page and no Chromium.
          name: "browser",
          setupFiles: [COST, "./e2e/browser/launcher.setup.ts"],
          globalSetup: "./e2e/browser/setup.ts",
          include: [BROWSER],
          pool: "forks",
          isolate: false,
          fileParallelism: false,
          sequence: { groupOrder: 4 },
          testTimeout: LIMIT_MS / 4,
          hookTimeout: LIMIT_MS,
          expect: { poll: { timeout: LIMIT_MS / 12 } },
        },
      },
    ],
  },
});
