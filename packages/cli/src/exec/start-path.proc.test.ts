import { readFile, stat } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import { openMockWorld } from "../../test/mock-model.ts";

/** What is loaded when the first request goes out, beyond what Node has loaded by itself. */
const PRELOADED = `
const { subscribe } = require("node:diagnostics_channel");
const { writeFileSync } = require("node:fs");
const vm = require("node:vm");
const before = new Set(process.moduleLoadList);
const files = [];
vm.Script = class extends vm.Script {
  constructor(code, options) {
    super(code, options);
    files.push(options.filename);
  }
};
subscribe("http.client.request.created", () => {
  const builtins = process.moduleLoadList.filter((name) => !before.has(name));
  writeFileSync(process.env.LOADED, JSON.stringify({ builtins, files }));
});
`;

/** What a plain run does not call is loaded later, by whoever calls it. */
const MAX_BYTES = 550_000;

/** Each of these is used by every run, or comes along with one that is. None of them starts programs: no sandbox is opened yet. */
const BUILTINS = [
  "_http_agent",
  "_http_client",
  "_http_common",
  "_http_incoming",
  "_http_outgoing",
  "_http_server",
  "crypto",
  "http",
  "net",
  "os",
  "sqlite",
  "stream",
  "stream/promises",
  "string_decoder",
  "timers/promises",
];

test.runIf(process.platform === "linux")(
  "12: what exec loads before its first request is known by name, and does not grow (on Linux, where there is a sandbox)",
  async () => {
    const call = { tool: "exec_command", args: { cmd: "true" } };
    await using mock = await openMockWorld({
      respond: async ({ body, answers }) =>
        answers === 0 && JSON.stringify(body).includes("run true") ? { calls: [call] } : { text: "hello" },
    });
    const { world } = mock;
    await world.file("workspace/.git/HEAD", "ref: refs/heads/main\n");
    await world.file("workspace/.git/config", "[core]\n\tbare = false\n");
    const preload = await world.file("preload.cjs", PRELOADED);
    const record = path.join(world.root, "loaded.json");
    const env = { LOADED: record, NODE_OPTIONS: `--require=${preload}` };
    // The first run checks the configuration and uses a sandbox of the host; later ones remember both.
    for (const prompt of ["run true", "say hello"]) {
      const ran = await mock.exec(["--json", "-s", "workspace-write", prompt], { env });
      expect(ran).toMatchObject({ code: 0, stderr: "" });
    }
    const { builtins, files }: { builtins: string[]; files: string[] } = JSON.parse(await readFile(record, "utf8"));

    const names = files.map((file) => path.basename(file).replace(/-[\w-]{8}\.cjs$/, ""));
    expect(names.toSorted()).toEqual([
      "calls",
      "heddle",
      "openai",
      "openai-responses",
      "rolldown-runtime",
      "run",
      "strict-output",
    ]);
    const sizes = await Promise.all(files.map(async (file) => (await stat(file)).size));
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(MAX_BYTES);

    const named = builtins.flatMap((name) => /^NativeModule (?!internal\/)(.*)$/.exec(name)?.[1] ?? []);
    expect(named.toSorted()).toEqual(BUILTINS);
  },
);
