import { execFileSync } from "node:child_process";
import { appendFileSync, openSync, closeSync } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, stat, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { uuidv7 } from "@heddle/protocol";
import { openTestInbox, order } from "../../test/test-inbox.ts";
import { eventually } from "../../test/test-store.ts";
import { openTasks } from "../open-tasks.ts";
import { inboxFolder, type InboxFolder } from "./inbox-folder.ts";
import { takeOrder } from "./take-order.ts";

async function tickAfter(file: string): Promise<true | undefined> {
  const probe = `${file}.tmp`;
  await writeFile(probe, "");
  const [before, after] = [await stat(file), await stat(probe)];
  await rm(probe);
  return after.ctimeMs > before.ctimeMs ? true : undefined;
}

describe("orders become tasks", () => {
  test("61, 74: a file becomes one task and says so by its name; the folder is made when missing", async () => {
    await using t = await openTestInbox();
    await using _inbox = await t.open();
    await t.put("fix.md", order(t.workspace, "# Fix it\n\nDo it."));
    const processed = await t.appears("fix.md.processed-");
    const [task, ...others] = await t.tasks();
    expect(others).toEqual([]);
    expect(processed).toBe(`fix.md.processed-${task?.id}`);
    expect(task).toMatchObject({
      state: "pending",
      spec: { name: "Fix it", goal: "Do it.", workspace: t.workspace },
      source: { kind: "inbox", ref: path.join(t.folder, "fix.md") },
    });
    expect(await t.files()).toEqual([processed]);
  });

  test("62: any number of files, of any name, in folders below, each once, in the order they came", async () => {
    await using t = await openTestInbox();
    const names = ["z.md", "a.yaml", "sub/deep/n.json", "b b.txt", "ünïcode.yml"];
    for (const [index, name] of names.entries()) {
      const goal = `number ${index}`;
      const data = name.endsWith(".json")
        ? JSON.stringify({ goal, workspace: t.workspace })
        : `goal: ${goal}\nworkspace: ${t.workspace}\n`;
      await t.put(name, /\.(md|txt)$/.test(name) ? order(t.workspace, goal) : data);
      // The clock of a file system ticks every few milliseconds, and two files of one tick have no order but their names.
      await eventually("the next tick", () => tickAfter(path.join(t.folder, name)));
    }
    await using _inbox = await t.open();
    const tasks = await eventually("five tasks", async () => {
      const found = await t.tasks();
      return found.length === 5 ? found : undefined;
    });
    expect(tasks.map(({ spec }) => spec.goal)).toEqual(names.map((_, index) => `number ${index}`));
    await eventually(
      "all processed",
      async () => (await t.files()).filter((name) => name.includes(".processed-")).length === 5 || undefined,
    );
  });

  test("the same words in a new file are a new order", async () => {
    await using t = await openTestInbox();
    await using _inbox = await t.open();
    const ids = new Set<string>();
    for (let n = 0; n < 3; n += 1) {
      await t.put("same.md", order(t.workspace));
      await eventually("it is gone", async () => !(await t.files()).includes("same.md") || undefined);
      const tasks = await eventually(`task ${n}`, async () => {
        const found = await t.tasks();
        return found.length === n + 1 ? found : undefined;
      });
      for (const { id } of tasks) ids.add(id);
    }
    expect(ids.size).toBe(3);
  });

  test("73: whoever finds an order that was begun goes on with its number, and with no other words", async () => {
    await using t = await openTestInbox();
    const [same, other] = [uuidv7(), uuidv7()];
    const door = { journal: t.store.journal, tasks: openTasks({ journal: t.store.journal }).as("user:owner") };
    const begun = async (id: string, goal: string): Promise<string> => {
      const text = order(t.workspace, goal);
      const { task } = await takeOrder(door, { file: "a.md", text, source: { kind: "inbox" }, key: `inbox:${id}` });
      return task.id;
    };
    const ids = [await begun(same, "Do it."), await begun(other, "Do that.")];
    await t.put(`a.md.taking-${same}`, order(t.workspace, "Do it."));
    await t.put(`b/a.md.taking-${other}`, order(t.workspace, "Do something else."));
    await using _inbox = await t.open();
    expect(await t.appears("a.md.processed-")).toBe(`a.md.processed-${ids[0]}`);
    await t.appears("b/a.md.error-dispatch-raised.reason.txt");
    expect((await t.tasks()).map(({ id }) => id)).toEqual(ids);
  });

  test("72: a file that is still written is not taken until it rests", async () => {
    await using t = await openTestInbox();
    await using _inbox = await t.open({ settleMs: 1_500 });
    await t.put("slow.md", `---\nworkspace: ${t.workspace}\n---\n`);
    for (let n = 0; n < 8; n += 1) {
      appendFileSync(path.join(t.folder, "slow.md"), `line ${n}\n`);
      await new Promise((resolve) => {
        setTimeout(resolve, 60);
      });
      expect(await t.tasks()).toEqual([]);
    }
    await t.appears("slow.md.processed-");
    expect((await t.tasks())[0]?.spec.goal).toBe(Array.from({ length: 8 }, (_, n) => `line ${n}`).join("\n"));
  });

  test("F42: a file that is written to while it is read is read again when it rests", async () => {
    await using t = await openTestInbox();
    const plain = inboxFolder(t.folder);
    let reads = 0;
    const folder: InboxFolder = {
      ...plain,
      download(given, options) {
        if (given.includes(".taking-") && (reads += 1) === 1) appendFileSync(path.join(t.folder, given), "And that.\n");
        return plain.download(given, options);
      },
    };
    await using _inbox = await t.open({ folder });
    await t.put("one.md", order(t.workspace));
    await t.appears("one.md.processed-");
    expect((await t.tasks()).map(({ spec }) => spec.goal)).toEqual(["Do it.\nAnd that."]);
    expect(reads).toBe(2);
  });

  test("what is moved in whole is taken whole, and unfinished names are left alone", async () => {
    await using t = await openTestInbox();
    await using _inbox = await t.open();
    await t.put("fix.md.tmp", order(t.workspace));
    await t.put(".hidden.md", order(t.workspace));
    await t.put("~$fix.docx", "whoever has fix.docx open in Word");
    await t.put("marker.md", order(t.workspace));
    await t.appears("marker.md.processed-");
    expect(await t.files()).toEqual(expect.arrayContaining([".hidden.md", "fix.md.tmp", "~$fix.docx"]));
    await rename(path.join(t.folder, "fix.md.tmp"), path.join(t.folder, "fix.md"));
    await t.appears("fix.md.processed-");
    expect(await t.tasks()).toHaveLength(2);
  });
});

describe("what is no order says why, and is never tried again", () => {
  test.for([
    { name: "none.md", text: "Do it.\n", why: "parse-failed", reason: "there is no workspace" },
    {
      name: "typo.yaml",
      text: "goal: x\nworkspase: /tmp\n",
      why: "parse-failed",
      reason: 'typo.yaml:2:1: unknown key "workspase"',
    },
    { name: "broken.json", text: "{goal", why: "parse-failed", reason: "broken.json:1" },
    {
      name: "gone.md",
      text: "---\nworkspace: /no/such/folder\n---\nx\n",
      why: "parse-failed",
      reason: "there is no folder /no/such/folder",
    },
    { name: "latin1.md", text: Buffer.from([0x77, 0xe4, 0xff, 0xfe]), why: "parse-failed", reason: "not UTF-8" },
    { name: "latin1.yaml", text: Buffer.from([0x77, 0xe4, 0xff, 0xfe]), why: "parse-failed", reason: "not UTF-8" },
    { name: "big.md", text: Buffer.alloc(50 * 1024 * 1024, 0x61), why: "too-large", reason: "over 1 MiB" },
    { name: "letter.docx", text: "PK", why: "parse-failed", reason: "it is not a .docx, or its end is missing" },
    { name: "letter.odt", text: "PK", why: "unknown-kind", reason: "Save it as Markdown, text, YAML, JSON or docx" },
    { name: "thread.md", text: "---\nthread: 0190-none\n---\nx\n", why: "dispatch-raised", reason: "0190-none" },
    {
      name: "two.yaml",
      text: "tasks:\n  - {name: a, goal: x, workspace: /tmp}\n  - {name: b, goal: x, workspace: /tmp}\n",
      why: "parse-failed",
      reason: "2 files for 2 tasks",
    },
  ])("69, 70, 72, D20: $name ($why)", async ({ name, text, why, reason }) => {
    await using t = await openTestInbox();
    await using _inbox = await t.open();
    await t.put(name, text);
    await t.appears(`${name}.error-${why}.reason.txt`);
    const told = await readFile(path.join(t.folder, `${name}.error-${why}.reason.txt`), "utf8");
    expect(told).toContain(`${name} did not become a task.`);
    expect(told).toContain(reason);
    expect(await t.files()).toEqual([`${name}.error-${why}`, `${name}.error-${why}.reason.txt`]);
    expect(await t.tasks()).toEqual([]);
    expect(t.said).toHaveLength(1);
  });

  test("71: a name that is taken gets a number", async () => {
    await using t = await openTestInbox();
    await using _inbox = await t.open();
    await t.put("x.md", "no workspace");
    await t.appears("x.md.error-parse-failed.reason.txt");
    await t.put("x.md", "again none");
    await t.appears("x.md.error-parse-failed.1.reason.txt");
    expect(await readFile(path.join(t.folder, "x.md.error-parse-failed"), "utf8")).toBe("no workspace");
    expect(await readFile(path.join(t.folder, "x.md.error-parse-failed.1"), "utf8")).toBe("again none");
  });

  test("72: links, pipes and folders that are links are never followed", async () => {
    await using t = await openTestInbox();
    await mkdir(t.folder);
    const outside = path.join(t.store.folder, "outside");
    await mkdir(outside);
    await writeFile(path.join(outside, "secret.md"), order(t.workspace));
    await symlink(path.join(outside, "secret.md"), path.join(t.folder, "link.md"));
    await symlink(outside, path.join(t.folder, "linked"));
    execFileSync("mkfifo", [path.join(t.folder, "pipe.md")]);
    await using _inbox = await t.open();
    for (const name of ["link.md", "linked", "pipe.md"]) await t.appears(`${name}.error-not-a-file.reason.txt`);
    expect(await t.tasks()).toEqual([]);
    expect(await readdir(outside)).toEqual(["secret.md"]);
  });

  test("a very long name still leads to a task or a reason", async () => {
    await using t = await openTestInbox();
    await using _inbox = await t.open();
    await t.put(`${"ä".repeat(120)}.md`, order(t.workspace));
    await t.put(`${"b".repeat(250)}.md`, "no workspace");
    const processed = await t.appears("ä");
    await eventually(
      "processed",
      async () => (await t.files()).some((name) => /^ä+\.md\.processed-/.test(name)) || undefined,
    );
    expect(Buffer.byteLength(processed)).toBeLessThanOrEqual(255);
    await eventually(
      "its reason",
      async () => (await t.files()).some((name) => /^b+\.md\.error-parse-failed\.reason\.txt$/.test(name)) || undefined,
    );
  });

  test("an empty file waits to be written", async () => {
    await using t = await openTestInbox();
    await using _inbox = await t.open();
    const fd = openSync(path.join(t.folder, "later.md"), "w");
    await t.put("marker.md", order(t.workspace));
    await t.appears("marker.md.processed-");
    expect(await t.files()).toContain("later.md");
    closeSync(fd);
  });
});

describe("folders", () => {
  test("F42: a folder that is deleted is made again, said, and continues", async () => {
    await using t = await openTestInbox();
    await using _inbox = await t.open({ rescanMs: 200 });
    await t.put("one.md", order(t.workspace));
    await t.appears("one.md.processed-");
    await rm(t.folder, { recursive: true });
    await eventually("it is back", async () => (await readdir(t.folder).catch(() => undefined)) && t.said[0]);
    expect(t.said).toEqual([expect.stringContaining("was missing and is created again")]);
    await t.put("sub/two.md", order(t.workspace));
    await t.appears("sub/two.md.processed-");
    expect(await t.tasks()).toHaveLength(2);
  });

  test("a folder that is deleted while it is made is made all the same", async () => {
    await using t = await openTestInbox();
    const folder = inboxFolder(t.folder);
    for (let n = 0; n < 200; n += 1) {
      folder.ensure();
      const removing = rm(t.folder, { recursive: true, force: true });
      const made = folder.ensure();
      await removing;
      expect(typeof made).toBe("boolean");
    }
  });

  test("looking alone finds what watching misses", async () => {
    await using t = await openTestInbox();
    const unwatched = { ...inboxFolder(t.folder), watch: () => ({ [Symbol.dispose]: () => undefined }) };
    await using _inbox = await t.open({ folder: unwatched, rescanMs: 100 });
    await t.put("sub/one.md", order(t.workspace));
    await t.appears("sub/one.md.processed-");
  });

  test("watching alone is enough: nothing waits for the next look", async () => {
    await using t = await openTestInbox();
    await using _inbox = await t.open({ rescanMs: 3_600_000 });
    await t.put("one.md", order(t.workspace));
    await t.appears("one.md.processed-");
    await t.put("new/folder/two.md", order(t.workspace));
    await t.appears("new/folder/two.md.processed-");
  });

  test("80: an inbox folder lists, fetches, puts, removes and moves, and refuses every way out", async () => {
    await using t = await openTestInbox();
    const folder = inboxFolder(t.folder);
    expect([folder.ensure(), folder.ensure()]).toEqual([true, false]);
    await folder.upload("a.md", "words");
    const skips = (): boolean => false;
    expect(await folder.ls("", skips)).toMatchObject([{ path: "a.md", kind: "file", sizeBytes: 5 }]);
    expect(Buffer.from((await folder.download("a.md", 10))?.bytes ?? []).toString()).toBe("words");
    expect(await folder.move("a.md", "b.md")).toBe("b.md");
    await folder.upload("c.md", "others");
    expect(await folder.move("c.md", "b.md")).toBe("b.md.1");
    expect(await folder.move("nothing", "d.md")).toBeUndefined();
    expect(await folder.download("nothing", 10)).toBeUndefined();
    await folder.delete("b.md");
    await folder.delete("b.md.1");
    expect(await folder.ls("", skips)).toEqual([]);

    const evil = `${t.folder}-evil`;
    await mkdir(evil);
    await writeFile(path.join(evil, "x.md"), "secret");
    await symlink(evil, path.join(t.folder, "linked"));
    for (const out of ["../inbox-evil/x.md", "..", "/etc/passwd", "a/../../x", "a//b", "./a", "a\0b", "linked/x.md"]) {
      await expect(folder.download(out, 10), out).rejects.toMatchObject({ code: "path.outside" });
      await expect(folder.upload(out, "x"), out).rejects.toMatchObject({ code: "path.outside" });
      await expect(folder.delete(out), out).rejects.toMatchObject({ code: "path.outside" });
    }
    await expect(folder.move("linked/x.md", "x.md")).rejects.toMatchObject({ code: "path.outside" });
    expect(await readFile(path.join(evil, "x.md"), "utf8")).toBe("secret");
  });

  test("122: workspaces lie in the allowed roots, by where they really are", async () => {
    await using t = await openTestInbox();
    const evil = `${t.workspace}-evil`;
    await mkdir(evil);
    await mkdir(path.join(t.workspace, "in"));
    await symlink(evil, path.join(t.workspace, "link"));
    await using _inbox = await t.open({ roots: [t.workspace] });
    for (const [name, workspace] of [
      ["evil", evil],
      ["link", path.join(t.workspace, "link")],
      ["up", path.join(t.workspace, "in", "..", "..", "work-evil")],
    ] as const) {
      await t.put(`${name}.md`, order(workspace));
      await t.appears(`${name}.md.error-parse-failed.reason.txt`);
    }
    await t.put("good.md", order(path.join(t.workspace, "in")));
    await t.appears("good.md.processed-");
    expect(await t.tasks()).toHaveLength(1);
  });
});
