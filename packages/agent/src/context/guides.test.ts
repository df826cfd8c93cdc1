import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { loadGuides, type GuideOptions } from "./guides.ts";

let root = "";

beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), "guides-")));
  await put("ws/.git/HEAD", "ref: refs/heads/main\n");
  await mkdir(join(root, "ws/near"));
});

afterEach(() => rm(root, { recursive: true }));

async function put(name: string, text: string): Promise<void> {
  await mkdir(dirname(join(root, name)), { recursive: true });
  await writeFile(join(root, name), text);
}

async function told(settings: GuideOptions["settings"] = {}, codexHome?: string): Promise<readonly unknown[]> {
  const guides = await loadGuides({
    workspace: join(root, "ws/near"),
    home: join(root, "home"),
    codexHome: codexHome === undefined ? undefined : join(root, codexHome),
    masked: [join(root, "home")],
    settings,
    signal: AbortSignal.timeout(60_000),
  });
  return guides.map(({ path, text, bytes, truncatedBytes }) => {
    expect(bytes).toBe(Buffer.byteLength(text));
    return [path.slice(root.length + 1), text, ...(truncatedBytes === 0 ? [] : [truncatedBytes])];
  });
}

test("the owner's guide comes first, from Heddle's home or else from Codex's where that is used", async () => {
  await put("ws/AGENTS.md", "repository");
  await put("codex/AGENTS.md", "codex");
  expect(await told()).toEqual([["ws/AGENTS.md", "repository"]]);
  expect(await told({}, "codex")).toEqual([
    ["codex/AGENTS.md", "codex"],
    ["ws/AGENTS.md", "repository"],
  ]);
  await put("home/AGENTS.md", "heddle");
  expect(await told({}, "codex")).toEqual([
    ["home/AGENTS.md", "heddle"],
    ["ws/AGENTS.md", "repository"],
  ]);
});

test("an override takes the place of its neighbour; a blank one silences a folder, and not the home", async () => {
  await put("home/AGENTS.md", "home");
  await put("home/AGENTS.override.md", "home, overridden");
  await put("ws/AGENTS.md", "root");
  await put("ws/AGENTS.override.md", "root, overridden");
  expect(await told()).toEqual([
    ["home/AGENTS.override.md", "home, overridden"],
    ["ws/AGENTS.override.md", "root, overridden"],
  ]);
  await put("home/AGENTS.override.md", " \n");
  await put("ws/AGENTS.override.md", " \n");
  expect(await told()).toEqual([["home/AGENTS.md", "home"]]);
});

test("other names count where a folder has no AGENTS.md, the first that is there", async () => {
  await put("ws/TEAM.md", "team");
  await put("ws/CLAUDE.md", "claude");
  await put("ws/near/CLAUDE.md", "not this one");
  await put("ws/near/AGENTS.md", "near");
  expect(await told({ guideNames: ["CLAUDE.md", "TEAM.md"] })).toEqual([
    ["ws/CLAUDE.md", "claude"],
    ["ws/near/AGENTS.md", "near"],
  ]);
});

test("the limit is for the repository's together and cuts the farthest first; with 0 none is read", async () => {
  await put("home/AGENTS.md", "home guide");
  await put("ws/AGENTS.md", "0123456789");
  await put("ws/near/AGENTS.md", "near");
  expect(await told({ guideBytes: 9 })).toEqual([
    ["home/AGENTS.md", "home guide"],
    ["ws/AGENTS.md", "01234", 5],
    ["ws/near/AGENTS.md", "near"],
  ]);
  expect(await told({ guideBytes: 0 })).toEqual([["home/AGENTS.md", "home guide"]]);
});

test("a folder, a link into the home and a guide that is not there are none", async () => {
  await put("home/secret", "state of Heddle");
  await symlink(join(root, "home/secret"), join(root, "ws/near/AGENTS.md"));
  await mkdir(join(root, "ws/AGENTS.md"));
  expect(await told()).toEqual([]);
});
