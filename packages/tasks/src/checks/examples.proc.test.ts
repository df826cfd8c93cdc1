import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { LeafCheck } from "@heddle/protocol/tasks";
import { expect, test } from "vitest";
import { openTaskFixture } from "../../test/task-fixture.ts";
import { readSpec } from "../spec/read-spec.ts";
import { leavesOf } from "./names.ts";

const PAGE = join(import.meta.dirname, "../../../../docs/use/checks.md");

/** The blocks of YAML on the page, by their first key. */
function blocks(key: string): readonly string[] {
  const found = [...readFileSync(PAGE, "utf8").matchAll(/^```yaml\n([^]*?)^```$/gm)].map(([, text]) => text ?? "");
  return found.filter((text) => text.startsWith(`${key}:`));
}

const before = {
  ".gitignore": "report.xml\n",
  LICENSE: "mine\n",
  "vendor/x.js": "x\n",
  "src/index.js": "exports.login = () => false; // TODO\n",
  "src/legacy.js": "old\n",
  "docs/old.md": "old\n",
  "config/a.json": "{}\n",
  "index.test.js":
    'const t = require("node:test"), { login } = require("./src/index.js");\n' +
    't.test("logs in", () => { if (!login()) throw new Error("no"); });\nt.test("is there", () => {});\n',
  "tools/build.js": 'console.log("built\\n3 files");\n',
  "lint.sh": "! grep -rn TODO src\n",
  "package.json": JSON.stringify({
    version: "1.0.0",
    engines: { node: ">=24" },
    exports: {},
    scripts: { test: "node --test", lint: "sh lint.sh" },
  }),
  "CHANGELOG.md": "## 1.0\n",
  "PLAN.md": "- [ ] write it\n",
  "openspec/changes/add-login/tasks.md": "- [ ] 1.1 form\n",
  "schemas/config.schema.json": '{"type":"object","required":["name"]}\n',
  "deploy.yaml": "services:\n  - image: web:1\n",
};

const work = {
  "src/index.js": "exports.login = () => true;\n",
  "docs/guide.md": "# Guide\n",
  "migrations/1.sql": "select 1;\n",
  "package.json": before["package.json"].replace("1.0.0", "2.0.0"),
  "CHANGELOG.md": "## 2.0\n\n## 1.0\n",
  "PLAN.md": "- [x] write it\n",
  "openspec/changes/add-login/tasks.md": "- [x] 1.1 form\n",
  "config.json": '{"name":"x"}\n',
  "deploy.yaml": "services:\n  - image: web:2\n",
};

test("every example of the page on checks is run: it fails before the work and passes after it", async () => {
  await using server = await serveOk();
  const checks = blocks("checks").map((block) => block.slice("checks:\n".length));
  const page = `checks:\n${checks.join("")}${blocks("protect").join("")}${blocks("second_opinion").join("")}`;
  const text = `name: all of them\nworkspace: .\ngoal: everything\n${page.replace(":3000", `:${server.port}`)}`;
  const {
    specs: [spec],
  } = readSpec({ file: "page.yaml", text, folder: "/" });
  const kinds = new Set(leavesOf(spec?.checks ?? []).map(({ kind }) => kind));
  expect(kinds).toEqual(new Set(LeafCheck.options.map(({ shape }) => shape.kind.value)));
  expect(spec?.secondOpinion).toEqual({ model: "another-model", required: false });

  await using fixture = await openTaskFixture({ git: true, files: before, ...(spec === undefined ? {} : { spec }) });
  const baseline = await fixture.takeBaseline();
  for (const [path, content] of Object.entries(work)) await fixture.write(path, content);
  await fixture.remove("src/legacy.js");
  fixture.git("add", "-A");
  fixture.git("commit", "-q", "-m", "feat: log in");
  const verdict = await fixture.verify(baseline);
  expect(verdict.results.filter(({ outcome }) => outcome !== "passed")).toEqual([]);
  expect(verdict).toMatchObject({ passed: true, violations: [] });
  expect(verdict.results.filter(({ isVacuous }) => isVacuous).map(({ name }) => name)).toEqual([
    "json package.json engines.node",
    'json package.json exports["./old"]',
    "command node build.js",
    `http http://127.0.0.1:${server.port}/health`,
    "schema deploy.yaml",
  ]);
  expect(verdict.results.filter(({ isGuard }) => isGuard).map(({ name }) => name)).toEqual([
    "unchanged LICENSE, vendor/**",
    "git only",
  ]);
});

async function serveOk() {
  const server = createServer((_, response) => response.end("ok"));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    async [Symbol.asyncDispose]() {
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
