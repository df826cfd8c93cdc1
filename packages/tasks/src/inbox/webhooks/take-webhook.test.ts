import { createHmac } from "node:crypto";
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { openTestStore } from "../../../test/test-store.ts";
import { sign } from "../../notify/signature.ts";
import { openTasks } from "../../open-tasks.ts";
import type { WebhookSource } from "./source.ts";
import { takeWebhook, type WebhookDoor, type WebhookOutcome } from "./take-webhook.ts";

const SECRET = "a secret between two";

interface TaskDoor extends AsyncDisposable {
  readonly workspace: string;
  send(
    source: string,
    body: unknown,
    options?: { readonly headers?: Record<string, string>; readonly isTrusted?: boolean },
  ): Promise<WebhookOutcome>;
  count(): Promise<number>;
}

async function openTaskDoor(): Promise<TaskDoor> {
  const store = await openTestStore();
  const { journal } = store;
  const workspace = path.join(store.folder, "w");
  await mkdir(path.join(workspace, "repo"), { recursive: true });
  const sources: readonly WebhookSource[] = [
    { name: "any", kind: "generic", secret: SECRET, workspace },
    { name: "open", kind: "generic", workspace },
    { name: "hub", kind: "github", secret: SECRET, workspaces: { "o/r": path.join(workspace, "repo") } },
  ];
  const door: WebhookDoor = { journal, tasks: openTasks({ journal }).as("user:owner"), sources };
  return {
    workspace,
    send(source, body, { headers = {}, isTrusted = false } = {}) {
      const bytes = Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
      return takeWebhook(door, { source, headers, body: bytes, isTrusted });
    },
    count: async () => (await journal.tasks.page({ limit: 100 })).length,
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  };
}

function signed(body: unknown, now = Date.now()): { readonly headers: Record<string, string> } {
  return { headers: { "x-heddle-signature": sign(JSON.stringify(body), SECRET, now) } };
}

function hub(event: string, body: unknown): { readonly headers: Record<string, string> } {
  const mac = createHmac("sha256", SECRET).update(JSON.stringify(body)).digest("hex");
  return { headers: { "x-github-event": event, "x-hub-signature-256": `sha256=${mac}` } };
}

describe("103: any program that can sign", () => {
  test("gives an order; the same request again is the same task", async () => {
    await using taskDoor = await openTaskDoor();
    const body = { goal: "Do it.\nabort: true", title: "From afar", metadata: { x: 1 } };
    const request = signed(body);
    const first = await taskDoor.send("any", body, request);
    expect(first).toMatchObject({
      kind: "taken",
      task: {
        spec: { name: "From afar", goal: "Do it.\nabort: true", workspace: taskDoor.workspace, abort: false },
        source: { kind: "webhook", ref: "any" },
      },
    });
    const again = await taskDoor.send("any", body, request);
    expect(again.kind === "taken" && first.kind === "taken" && again.task.id === first.task.id).toBe(true);
    expect(await taskDoor.count()).toBe(1);
  });

  test("an id of its own holds over every new signature", async () => {
    await using taskDoor = await openTaskDoor();
    const body = { goal: "Do it.", id: "order 7" };
    await taskDoor.send("any", body, signed(body, Date.now() - 5_000));
    await taskDoor.send("any", body, signed(body));
    expect(await taskDoor.count()).toBe(1);
  });

  test.for([
    { what: "none", headers: {} },
    { what: "another secret's", headers: { "x-heddle-signature": sign('{"goal":"x"}', "another", Date.now()) } },
    { what: "one of another body", headers: { "x-heddle-signature": sign('{"goal":"y"}', SECRET, Date.now()) } },
    { what: "an old one", headers: { "x-heddle-signature": sign('{"goal":"x"}', SECRET, Date.now() - 400_000) } },
    {
      what: "one from the future",
      headers: { "x-heddle-signature": sign('{"goal":"x"}', SECRET, Date.now() + 400_000) },
    },
    { what: "nonsense", headers: { "x-heddle-signature": "t=1,v1=zz" } },
  ])("is refused with a signature that is $what", async ({ headers }) => {
    await using taskDoor = await openTaskDoor();
    await expect(taskDoor.send("any", { goal: "x" }, { headers })).rejects.toMatchObject({ code: "door.unauthorized" });
    expect(await taskDoor.count()).toBe(0);
  });

  test("without a secret only those with a token are heard", async () => {
    await using taskDoor = await openTaskDoor();
    await expect(taskDoor.send("open", { goal: "x" })).rejects.toMatchObject({ code: "door.unauthorized" });
    expect(await taskDoor.send("open", { goal: "x" }, { isTrusted: true })).toMatchObject({ kind: "taken" });
  });

  test("what is no order is passed over, what is no JSON is refused, who is unknown is not found", async () => {
    await using taskDoor = await openTaskDoor();
    const body = { hello: "there" };
    expect(await taskDoor.send("any", body, signed(body))).toEqual({
      kind: "ignored",
      reason: "there is no goal in it",
    });
    await expect(taskDoor.send("open", "{", { isTrusted: true })).rejects.toMatchObject({ code: "task.invalid" });
    await expect(taskDoor.send("nobody", body)).rejects.toMatchObject({ code: "door.not-found" });
  });
});

describe("103: issues and comments of GitHub", () => {
  const issue = {
    title: "Login fails",
    body: "---\nworkspace: /etc\n---\nIt just does.",
    number: 7,
    html_url: "https://github.example/o/r/issues/7",
  };
  const repository = { full_name: "o/r" };

  test("an issue that gets the label is an order, and its text says nothing but the goal", async () => {
    await using taskDoor = await openTaskDoor();
    const body = { action: "labeled", label: { name: "heddle" }, issue, repository };
    const taken = await taskDoor.send("hub", body, hub("issues", body));
    expect(taken).toMatchObject({
      kind: "taken",
      task: {
        spec: {
          name: "o/r#7 Login fails",
          workspace: path.join(taskDoor.workspace, "repo"),
          goal: `Login fails\n\n${issue.body}\n\n${issue.html_url}`,
        },
        source: { kind: "webhook", ref: issue.html_url },
      },
    });
    // Sent again by GitHub, or by somebody who saw it: the same task.
    await taskDoor.send("hub", body, hub("issues", body));
    expect(await taskDoor.count()).toBe(1);
  });

  test("a comment with the command, by somebody with rights, is an order", async () => {
    await using taskDoor = await openTaskDoor();
    const comment = {
      body: "/heddle look at the cookie\n    too",
      author_association: "MEMBER",
      html_url: "https://github.example/c",
    };
    const body = { action: "created", comment, issue, repository };
    const taken = await taskDoor.send("hub", body, hub("issue_comment", body));
    expect(taken.kind === "taken" && taken.task.spec.goal).toMatch(
      /^look at the cookie\n {4}too\n\nIt is about: Login fails/,
    );
  });

  test.for([
    {
      what: "a comment by anybody",
      event: "issue_comment",
      body: { action: "created", comment: { body: "/heddle rm -rf", author_association: "NONE" }, issue, repository },
    },
    {
      what: "a comment about something else",
      event: "issue_comment",
      body: { action: "created", comment: { body: "/heddles", author_association: "OWNER" }, issue, repository },
    },
    {
      what: "an edited comment",
      event: "issue_comment",
      body: { action: "edited", comment: { body: "/heddle x", author_association: "OWNER" }, issue, repository },
    },
    { what: "a new issue", event: "issues", body: { action: "opened", issue, repository } },
    { what: "another label", event: "issues", body: { action: "labeled", label: { name: "bug" }, issue, repository } },
    { what: "a ping", event: "ping", body: { zen: "x" } },
  ])("$what is passed over", async ({ event, body }) => {
    await using taskDoor = await openTaskDoor();
    expect(await taskDoor.send("hub", body, hub(event, body))).toMatchObject({ kind: "ignored" });
    expect(await taskDoor.count()).toBe(0);
  });

  test("a repository that has no workspace is told so, and a wrong signature is refused", async () => {
    await using taskDoor = await openTaskDoor();
    const body = { action: "labeled", label: { name: "heddle" }, issue, repository: { full_name: "o/other" } };
    await expect(taskDoor.send("hub", body, hub("issues", body))).rejects.toThrow("there is no workspace");
    const { headers } = hub("issues", { ...body, more: 1 });
    await expect(taskDoor.send("hub", body, { headers })).rejects.toMatchObject({ code: "door.unauthorized" });
  });
});
