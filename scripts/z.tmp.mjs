import { rolldown } from "rolldown";
const b = await rolldown({
  input: { a: "/work/perf/packages/protocol/src/ztmp.ts" },
  platform: "node",
  external: [/^node:/],
  resolve: { conditionNames: ["heddle-source", "node", "import", "default"] },
  cwd: "/work/perf",
});
await b.write({
  dir: "/work/perfbench/zout",
  format: process.argv[2] ?? "cjs",
  entryFileNames: "[name].cjs",
  minify: true,
});
