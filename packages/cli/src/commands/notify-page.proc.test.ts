/** docs/use/notifications.md and docs/use/inbox.md: their configuration is right, and their commands do what they say. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, readFile } from "node:fs/promises";
import path from "node:path";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { parseOwn } from "@heddle/runtime/config-edit";
import { inboxOf, notifyingOf } from "@heddle/runtime/work";
import { LAUNCHER, openWorld, type World } from "../../test/heddle-process.ts";

const ROOT = path.join(import.meta.dirname, "../../../..");
const ENV = {
  SLACK_URL: "http://127.0.0.1:9/services/secret",
  HOOK_SECRET: "abc of the page",
  CI_SECRET: "secret of ci",
  GITHUB_WEBHOOK_SECRET: "secret of github",
};

async function blocksOf(page: string, language: string): Promise<readonly string[]> {
  const whole = await readFile(path.join(ROOT, "docs/use", page), "utf8");
  return [...whole.matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\`$`, "gm"))].map(([, body = ""]) => body);
}

async function sh(world: World, script: string): Promise<{ readonly code: number | null; readonly output: string }> {
  const env = { ...world.env, ...ENV, PATH: `${world.root}/bin:${world.env["PATH"]}` };
  const child = spawn("sh", ["-ec", script], { cwd: world.workspace, env, stdio: ["ignore", "pipe", "pipe"] });
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  return { code: child.exitCode, output: `${stdout}${stderr}` };
}

test("every configuration of both pages is right", async () => {
  const [inbox = "", webhooks = ""] = await blocksOf("inbox.md", "toml");
  expect(inboxOf(parseOwn(inbox, "inbox.md").config, ENV)).toMatchObject({
    folder: "/home/ada/inbox",
    defaultWorkspace: "/home/ada/project",
  });
  expect(inboxOf(parseOwn(webhooks, "inbox.md").config, ENV).sources.map(({ name, kind }) => [name, kind])).toEqual([
    ["ci", "generic"],
    ["github", "github"],
  ]);
  const [notify = ""] = await blocksOf("notifications.md", "toml");
  const { sinks } = notifyingOf(parseOwn(notify, "notifications.md").config, ENV);
  expect(sinks.map(({ name, kind }) => [name, kind])).toEqual([
    ["me", "desktop"],
    ["team", "slack"],
    ["program", "webhook"],
  ]);
});

test("the receiver of the page takes what the commands of the page send, and nothing unsigned", async () => {
  await using world = await openWorld();
  const [config = ""] = await blocksOf("notifications.md", "toml");
  const [commands = "", starting = ""] = await blocksOf("notifications.md", "sh");
  expect(starting).toContain("node examples/notify-receiver.mjs");
  const receiver = spawn(process.execPath, [path.join(ROOT, "examples/notify-receiver.mjs")], {
    env: { ...ENV, PATH: process.env["PATH"] },
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    const lines: string[] = [];
    receiver.stdout.setEncoding("utf8").on("data", (line: string) => void lines.push(line));
    await once(receiver.stdout, "data");
    const url = /http:\S+/.exec(lines.join(""))?.[0] ?? "";
    await world.file("home/config.toml", config.replace("http://127.0.0.1:8080/hook", url));
    await world.file("bin/heddle", `#!/bin/sh\nexec "${process.execPath}" "${LAUNCHER}" "$@"\n`);
    await chmod(`${world.root}/bin/heddle`, 0o755);
    for (const line of commands.trimEnd().split("\n")) {
      const { code, output } = await sh(world, line);
      expect(code, `${line}\n${output}`).toBe(0);
    }
    expect(lines.join("")).toContain("NOTIFY_TEST Heddle: This is a test. Notifications arrive.\n");
    expect((await fetch(url, { method: "POST", body: "{}" })).status).toBe(401);
  } finally {
    receiver.kill("SIGKILL");
    await once(receiver, "exit");
  }
});
