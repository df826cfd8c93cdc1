import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { findSkills, readSkill } from "./skills.ts";

const signal = new AbortController().signal;

async function makeFolder(): Promise<{ path: string } & AsyncDisposable> {
  const path = await mkdtemp(join(tmpdir(), "heddle-skills-"));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

async function writeSkill(folder: string, name: string, text: string): Promise<string> {
  await mkdir(join(folder, name), { recursive: true });
  await writeFile(join(folder, name, "SKILL.md"), text);
  return join(folder, name, "SKILL.md");
}

const skillText = (name: string, description: string): string =>
  `---\nname: ${name}\ndescription: ${description}\n---\nDo it.\n`;

test("the nearest folder wins, folders that are not there do not matter, and bad ones are named", async () => {
  await using folder = await makeFolder();
  const near = join(folder.path, "near");
  const far = join(folder.path, "far");
  const path = await writeSkill(near, "deploy", skillText("deploy", "near"));
  await writeSkill(far, "deploy", skillText("deploy", "far"));
  const other = await writeSkill(far, "a-folder", "---\ndescription: named by its folder\n---\n");
  const bad = await writeSkill(far, "bad", "no head");
  await mkdir(join(far, "empty"));
  await writeFile(join(far, "file"), "");
  expect(await findSkills([near, join(folder.path, "nowhere"), far], { writeRoots: [], masked: [] }, signal)).toEqual({
    skills: [
      { name: "a-folder", description: "named by its folder", path: other },
      { name: "deploy", description: "near", path },
    ],
    skipped: [{ path: bad, reason: "it does not begin with ---" }],
  });
});

test("a link into a masked folder shows nothing", async () => {
  await using folder = await makeFolder();
  const secret = join(folder.path, "secret");
  await writeSkill(secret, "deploy", skillText("deploy", "hidden"));
  const repo = join(folder.path, "repo");
  await mkdir(join(repo, "one"), { recursive: true });
  await symlink(join(secret, "deploy"), join(repo, "two"));
  await symlink(join(secret, "deploy", "SKILL.md"), join(repo, "one", "SKILL.md"));
  await symlink(secret, join(folder.path, "all"));
  const rules = { writeRoots: [], masked: [secret] };
  const found = await findSkills([repo, join(folder.path, "all")], rules, signal);
  expect(found.skills).toEqual([]);
  expect(JSON.stringify(found)).not.toContain("hidden");
});

test("a skill is read up to a cap with its hash", async () => {
  await using folder = await makeFolder();
  const path = await writeSkill(folder.path, "big", skillText("big", "x") + "y".repeat(100_000));
  const read = await readSkill(path, { writeRoots: [], masked: [] }, signal);
  expect(read.text).toHaveLength(32 * 1024);
  expect(read.truncatedBytes).toBeGreaterThan(60_000);
  expect(read.sha256).toMatch(/^[0-9a-f]{64}$/);
});
