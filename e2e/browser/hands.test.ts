/** Acts that reach further: threads, processes, the spec and the work of a task, by who may do what. */
import { execFileSync } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import type { Locator, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { cancelAll, comesTo, folderOf, heardOf, order, run } from "./orders.ts";
import { openStage, type Seat, type Stage } from "./stage.ts";

let stage: Stage;
let seat: Seat;
let page: Page;
beforeAll(async () => {
  stage = await openStage();
  seat = await stage.sit();
  ({ page } = seat);
});
afterAll(async () => {
  await seat[Symbol.asyncDispose]();
  await stage[Symbol.asyncDispose]();
});
afterEach(() => cancelAll(stage));

const act = (name: string | RegExp, within: Page | Locator = page): Locator => within.getByRole("button", { name });
const open = (at: string, on: Page = page) => on.goto(`${stage.server.url}${at}`);

/** The entries of the menu, as they are offered. */
async function menu(on: Page = page): Promise<readonly string[]> {
  await act("More", on.locator(".run-top")).click();
  return on.locator(".menu-list button").allTextContents();
}

async function thread(mark: string): Promise<string> {
  const { client } = stage.server;
  const workspace = folderOf(stage, mark);
  await mkdir(workspace, { recursive: true });
  const { id } = await client.createThread({ workspace });
  for (const words of ["first", "second"]) await client.runTurn(id, { input: `${words} [[${mark}]]` });
  return id;
}

const HANGS = {
  tool: "exec_command",
  args: { cmd: "echo begun; read word; echo got $word", tty: true, yield_time_ms: 30_000 },
};

test("a thread is renamed, put away and brought back, and forked after a turn; only its owner is offered to delete it", async () => {
  stage.plays("talk", [{ text: "Yes." }, { text: "Certainly." }]);
  const id = await thread("talk");
  await open(`/threads/${id}`);
  await menu();
  await act("Rename…").click();
  await page.getByRole("dialog").getByLabel("Name").fill("about the sock");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "about the sock" }).waitFor();
  await menu();
  await act("Archive").click();
  await expect.poll(async () => (await stage.server.client.readThread(id)).isArchived).toBe(true);
  await menu();
  await act("Bring back from the archive").click();
  await expect.poll(async () => (await stage.server.client.readThread(id)).isArchived).toBe(false);
  await act("Turn 1").last().click();
  await act("Fork the thread after turn 1").click();
  await page.waitForURL((url) => url.pathname.startsWith("/threads/") && !url.pathname.endsWith(id));
  await page.getByText("fork of").waitFor();
  const forked = page.url().split("/").at(-1) ?? "";
  expect((await stage.server.client.readThread(forked)).forkedFrom).toMatchObject({ threadId: id });
  const { token } = await stage.server.client.access.createToken({ name: "una", role: "user" });
  const { token: seen } = await stage.server.client.access.createToken({ name: "vic", role: "viewer" });
  await using user = await stage.sit({ token, at: `/threads/${id}` });
  await using viewer = await stage.sit({ token: seen, at: `/threads/${id}` });
  expect(await menu()).toContain("Delete the thread");
  const ofUser = await menu(user.page);
  expect([ofUser.includes("Rename…"), ofUser.includes("Delete the thread")]).toEqual([true, false]);
  expect(await menu(viewer.page)).toEqual(["Copy the address", "Copy: heddle exec resume"]);
  expect(await viewer.page.locator(".steer").count()).toBe(0);
  // What would be lost is said before it is.
  await act("Delete the thread").click();
  await act("Delete all that was said here, for good?").click();
  await page.waitForURL("**/threads");
  await expect(stage.server.client.readThread(forked)).rejects.toMatchObject({ status: 404 });
});

test("a command that waits is typed into and answered, on record by who typed; another one is ended", async () => {
  stage.plays("typing", [{ calls: [HANGS] }, { calls: [HANGS] }, { text: "It is done." }]);
  const { id } = await order(stage, "typing", { checks: [] });
  await open(`/tasks/${id}`);
  const running = page.getByRole("region", { name: "Processes" });
  await running.getByText("read word").first().waitFor();
  const pid = async (): Promise<string> => /pid (\d+)/.exec((await running.textContent()) ?? "")?.[1] ?? "";
  const first = await pid();
  await running.getByLabel("Type into this command").fill("sock");
  await running.getByRole("button", { name: "Type", exact: true }).click();
  const { threadId = "" } = await stage.server.client.tasks.read(id);
  await expect
    .poll(async () => (await heardOf(stage, threadId, "client.intended")).map(({ author, body }) => [author, body]))
    .toMatchObject([["user:owner", { act: { kind: "input", text: "sock\n", isEnd: false } }]]);
  await expect.poll(async () => JSON.stringify(await heardOf(stage, threadId, "item.completed"))).toContain("got sock");
  await expect
    .poll(async () => {
      await act("Look again", running).click();
      return /bash -c/.test((await running.textContent()) ?? "") && (await pid()) !== first;
    })
    .toBe(true);
  await act("End this one", running).first().click();
  await comesTo(stage, id, "claimed");
  expect((await heardOf(stage, threadId, "client.intended")).at(-1)).toMatchObject({
    body: { act: { kind: "endProcess" } },
  });
  await running.waitFor({ state: "detached" });
});

test("a task is given another name and limits, and its work is undone after a look at what that takes back", async () => {
  stage.plays("changed", [{ calls: [run("touch changed.txt other.txt")] }, { text: "It is done." }]);
  const { id } = await order(stage, "changed", { checks: [] });
  await comesTo(stage, id, "claimed");
  await open(`/tasks/${id}`);
  await menu();
  await act("Change name, labels, limits…").click();
  const form = page.getByRole("dialog", { name: "Change the task" });
  await form.getByLabel("Name").fill("a better name");
  await form.getByLabel("Labels, separated by commas").fill("red, blue");
  await form.getByLabel("Turns").fill("33");
  await act("Save", form).click();
  await page.getByRole("heading", { name: "a better name" }).waitFor();
  expect((await stage.server.client.tasks.read(id)).spec).toMatchObject({
    name: "a better name",
    labels: ["red", "blue"],
    budget: { turns: 33 },
  });
  await menu();
  await act("Undo its work…").click();
  const undo = page.getByRole("dialog", { name: "Undo its work" });
  await undo.getByText("2 files go back to how they were").waitFor();
  await undo.getByText("other.txt").waitFor();
  await act("Undo", undo).first().click();
  await undo.waitFor({ state: "detached" });
  expect((await stage.server.client.tasks.read(id)).undone).toMatchObject({ files: 2 });
});

test("verified work on a branch is merged by a press that asks first", async () => {
  const workspace = folderOf(stage, "merging");
  await mkdir(workspace, { recursive: true });
  const git = (...args: readonly string[]): string =>
    execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@localhost", ...args], {
      cwd: workspace,
      encoding: "utf8",
    });
  git("init", "--quiet", "--initial-branch=main");
  await writeFile(path.join(workspace, "readme.txt"), "first\n");
  git("add", "--all");
  git("commit", "--quiet", "-m", "first");
  stage.plays("merging", [{ calls: [run("echo work > merging.txt")] }, { text: "It is done." }]);
  const { id } = await stage.server.client.tasks.create({
    spec: { name: "merging", goal: "do [[merging]]", checks: [{ "file-exists": "merging.txt" }], worktree: {} },
    workspace,
  });
  await comesTo(stage, id, "verified");
  await open(`/tasks/${id}`);
  await page.getByRole("button", { name: "Merge", exact: true }).click();
  await act("Merge into the branch that is checked out?").click();
  await expect.poll(async () => (await stage.server.client.tasks.read(id)).merged?.how).toBe("commit");
  expect(await readFile(path.join(workspace, "merging.txt"), "utf8")).toBe("work\n");
  await page.getByRole("button", { name: "Merge", exact: true }).waitFor({ state: "detached" });
});

test("of the rights that an agent asks for it gets those that stay ticked", async () => {
  const asks = {
    tool: "request_permissions",
    args: {
      permissions: { network: { enabled: true }, file_system: { read: [], write: ["/var/tmp"] } },
      reason: "the registry",
    },
  };
  stage.plays("rights", [{ calls: [asks] }, { text: "It is done." }]);
  const { id } = await order(stage, "rights", { approval: "on-request", checks: [] });
  await open(`/tasks/${id}`);
  const dock = page.getByRole("group", { name: "A question of the agent" });
  await dock.getByLabel("the network").uncheck();
  await act("Allow once", dock).click();
  const { threadId = "" } = await comesTo(stage, id, "claimed");
  expect((await heardOf(stage, threadId, "approval.resolved")).at(-1)).toMatchObject({
    body: { decision: "accept", granted: { network: false, write: ["/var/tmp"] } },
  });
});
