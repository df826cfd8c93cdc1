/** Viewer, user, owner: what one may not do is not there, and the server refuses it whatever the page shows. */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../world.ts";
import { comesTo, heldModel, order, orderQuestion } from "./orders.ts";
import { visit } from "./probes.ts";
import { openStage, type Stage } from "./stage.ts";

const ROLES = ["viewer", "user", "owner"] as const;
type Role = (typeof ROLES)[number];

let stage: Stage;
const tokens = new Map<Role, string>();
const ids = { running: "", asking: "", asks: "", approval: "", ended: "" };
const held = heldModel();
beforeAll(async () => {
  stage = await openStage();
  const { client } = stage.server;
  for (const role of ROLES) tokens.set(role, (await client.access.createToken({ name: `a-${role}`, role })).token);
  stage.plays("running", [held.step]);
  // In the server's own folder: what is in others only an owner sees.
  const spec = { name: "ended", goal: "say that it is done", checks: [] };
  const { id } = await client.tasks.create({ spec, workspace: stage.world.workspace });
  ids.ended = (await comesTo(stage, id, "claimed")).id;
  ids.running = (await order(stage, "running")).id;
  const asking = await comesTo(stage, (await orderQuestion(stage, "asking")).id, "waiting");
  ids.asking = asking.id;
  ids.asks = asking.threadId ?? "";
  ids.approval = (await client.listApprovals(ids.asks)).data[0]?.id ?? "";
  await comesTo(stage, ids.running, "running");
  await until(async () => (await client.tasks.read(ids.running)).threadId !== undefined, "its thread");
});
afterAll(async () => {
  held.letGo();
  await stage[Symbol.asyncDispose]();
});

/** Everything that can be pressed or written in, in what is shown now. */
async function controls(page: Page): Promise<readonly string[]> {
  const named = page.locator("#main").getByRole("button").or(page.locator("#main").getByRole("textbox"));
  return await named.evaluateAll((all: HTMLElement[]) =>
    all.map((one) =>
      (one.getAttribute("aria-label") ?? one.textContent).trim().replace(/ (?:\u21e7?[A-Z]|\u2318\u21b5)$/, ""),
    ),
  );
}

/** What there is on each page, the menus opened. */
async function offers(role: Role): Promise<Readonly<Record<string, readonly string[]>>> {
  await using seat = await stage.sit({ token: tokens.get(role) ?? "" });
  const { page } = seat;
  await page.locator("li.ask", { hasText: "touch asking.txt" }).waitFor();
  const found: Record<string, readonly string[]> = {};
  for (const [name, at] of [
    ["now", "/now"],
    ["running", `/tasks/${ids.running}`],
    ["asking", `/tasks/${ids.asking}`],
    ["ended", `/tasks/${ids.ended}`],
    ["threads", "/threads"],
    ["evidence", "/evidence"],
    ["settings", "/settings"],
    ["new", "/new"],
  ] as const) {
    await visit(page, at);
    if (name === "running") await page.locator(".turn").first().waitFor();
    if (name === "asking") await page.locator(".dock").waitFor();
    // A press elsewhere would close the one before.
    await page
      .locator("#main [aria-haspopup]")
      .evaluateAll((all: HTMLElement[]) => all.forEach((menu) => menu.click()));
    found[name] = await controls(page);
  }
  found["frame"] = await page.locator(".rail a").allInnerTexts();
  return found;
}

const ACTS = {
  now: [/^Deny…/, /^Deny, and stop/],
  running: [
    /^Pause/,
    /^Interrupt/,
    /^Take over/,
    /^Cancel the task/,
    /^End it by my word/,
    /^Steer the agent/,
    /^Verify now/,
  ],
  asking: [/^Deny, and say why/, /^Pause/],
  ended: [/^Try again/, /^Archive/, /^Fork/],
  threads: [/^Say something to a new agent/, /^Begin/],
  evidence: [/^Verify all/],
  new: [/^Add to the queue/, /^Run them/, /^Propose checks/],
} as const;
const OWNERS = {
  now: [/^Allow once/, /^Allow for this thread/],
  asking: [/^Allow once/, /^Allow for this thread/],
  ended: [/^Delete the task/],
  settings: [/^Make a token/, /^Revoke/],
} as const;

test.each(ROLES)("the role %s is offered what it may do, and nothing else", async (role) => {
  const found = await offers(role);
  const isThere = (
    table: Readonly<Record<string, readonly RegExp[]>>,
  ): readonly (readonly [string, string, boolean])[] =>
    Object.entries(table).flatMap(([at, names]) =>
      names.map((name) => [at, name.source, found[at]?.some((text) => name.test(text)) === true] as const),
    );
  const expected = (table: Readonly<Record<string, readonly RegExp[]>>, is: boolean) =>
    Object.entries(table).flatMap(([at, names]) => names.map((name) => [at, name.source, is]));
  expect(isThere(ACTS)).toEqual(expected(ACTS, role !== "viewer"));
  expect(isThere(OWNERS)).toEqual(expected(OWNERS, role === "owner"));
  expect(found["frame"]?.some((text) => text.includes("New task"))).toBe(role !== "viewer");
});

test("the server refuses a viewer every act of the page, and a user those of an owner", async () => {
  const task = (act: string, body: object = {}) => ["POST", `/api/tasks/${ids.running}/${act}`, body] as const;
  const thread = `/api/threads/${ids.asks}`;
  const answered = (decision: string) => ["POST", `${thread}/approvals/${ids.approval}`, { decision }] as const;
  const ofOwners = [
    answered("accept"),
    answered("acceptForThread"),
    ["DELETE", `/api/tasks/${ids.ended}`, undefined],
    ["GET", "/api/tokens", undefined],
    ["POST", "/api/tokens", { name: "mallory", role: "owner" }],
    ["DELETE", "/api/tokens/a-owner", undefined],
    ["POST", "/api/tasks", { spec: { goal: "x", sandbox: "danger-full-access" }, workspace: stage.world.workspace }],
  ] as const;
  const ofUsers = [
    ...["pause", "resume", "cancel", "retry", "complete", "accept", "archive", "unarchive"].map((act) => task(act)),
    task("relieve", { action: "eof" }),
    answered("decline"),
    answered("cancel"),
    ["POST", "/api/tasks", { spec: { goal: "x" }, workspace: stage.world.workspace }],
    ["POST", "/api/tasks/plan", { prompt: "x" }],
    ["POST", "/api/threads", {}],
    ["POST", `${thread}/turns`, { input: "x" }],
    ["POST", `${thread}/fork`, {}],
    ["POST", "/api/verify", {}],
  ] as const;
  const statuses = async (role: Role, calls: readonly (readonly [string, string, object | undefined])[]) =>
    await Promise.all(
      calls.map(async ([method, path, body]) => {
        const { status } = await fetch(`${stage.server.url}${path}`, {
          method,
          headers: { authorization: `Bearer ${tokens.get(role) ?? ""}`, "content-type": "application/json" },
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        });
        return `${method} ${path} ${status}`;
      }),
    );
  const refused = (calls: readonly (readonly [string, string, object | undefined])[]) =>
    calls.map(([method, path]) => `${method} ${path} 403`);
  expect(await statuses("viewer", [...ofOwners, ...ofUsers])).toEqual(refused([...ofOwners, ...ofUsers]));
  expect(await statuses("user", ofOwners)).toEqual(refused(ofOwners));
  const { client } = stage.server;
  expect((await client.listApprovals(ids.asks)).data).toHaveLength(1);
  expect((await client.tasks.read(ids.running)).state).toBe("running");
});
