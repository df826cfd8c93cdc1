/** `heddle notify`, and the inbox and sinks of `heddle watch`, against real receivers on loopback. */
import { appendFile, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { expect, test } from "vitest";
import { openWorld, run, start, type Ran, type World } from "../../test/heddle-process.ts";
import { jsonLines, MOCK_KEY, openMockWorld } from "../../test/mock-model.ts";

interface Receiver extends AsyncDisposable {
  readonly url: string;
  readonly bodies: string[];
  status: number;
}

async function openReceiver(): Promise<Receiver> {
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (text: string) => (body += text));
    request.on("end", () => {
      receiver.bodies.push(body);
      response.writeHead(receiver.status).end();
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  const receiver = {
    url: `http://127.0.0.1:${port}/services/T000/secret-part`,
    bodies: [] as string[],
    status: 204,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
  return receiver;
}

const DEADLINE_MS = 90_000;

async function eventually<T>(look: () => Promise<T | undefined> | T | undefined): Promise<T> {
  const deadline = Date.now() + DEADLINE_MS;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (Date.now() > deadline) throw new Error("not in time");
    await new Promise((resolve) => {
      setTimeout(resolve, 20);
    });
  }
}

async function notify(world: World, ...args: readonly string[]): Promise<Ran> {
  return run(["notify", ...args], { world });
}

test("list says who is told what, without what is secret; without sinks it says how to begin", async () => {
  await using world = await openWorld();
  const none = await notify(world, "list");
  expect(none).toMatchObject({ code: 0, stderr: "" });
  expect(none.stdout).toContain('[notify.me]\ntype = "desktop"');
  await world.file(
    "home/config.toml",
    `[notify.team]\ntype = "slack"\nurl = "https://hooks.example/services/T0/secret-part"\n`,
  );
  const listed = await notify(world, "list");
  expect(listed.stdout).toBe(
    "team  slack  https://hooks.example/…\n  TASK_COMPLETED TASK_FAILED TASK_STALLED PERMISSION_WAITING BUDGET_PAUSED\n  0 delivered, 0 queued, 0 dead\n",
  );
  expect(jsonLines(await notify(world, "list", "--json"))).toMatchObject([{ name: "team", kind: "slack", dead: 0 }]);
});

test("test sends one and its exit code says whether it arrived", async () => {
  await using world = await openWorld();
  await using receiver = await openReceiver();
  await world.file("home/config.toml", `[notify.hook]\nurl = "${receiver.url}"\n`);
  expect(await notify(world, "test", "hook")).toMatchObject({ code: 0, stdout: "hook: delivered, answered 204\n" });
  expect(JSON.parse(receiver.bodies[0] ?? "")).toMatchObject({ event: "NOTIFY_TEST", schema_version: "1.0" });
  receiver.status = 500;
  const failed = await notify(world, "test", "hook", "--json");
  expect(failed.code).toBe(8);
  expect(JSON.parse(failed.stdout)).toMatchObject({ sink: "hook", kind: "retry", status: 500 });
  expect(failed.stdout).not.toContain("secret-part");
  const unknown = await notify(world, "test", "hok");
  expect(unknown).toMatchObject({ code: 2, stderr: 'heddle: there is no sink hok; did you mean "hook"?\n' });
});

test("mistakes are told with what to write", async () => {
  await using world = await openWorld();
  expect((await notify(world)).stderr).toContain("write heddle notify list, test SINK, dead, redeliver ID");
  expect((await notify(world, "lst")).stderr).toContain('did you mean "list"?');
  expect((await notify(world, "--help")).stdout).toContain("heddle notify redeliver --all");
  await world.file("home/config.toml", `[notify.x]\nurl = "ftp://a"\n`);
  expect(await notify(world, "list")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("config.toml:2: notify.x.url must be an http or https address"),
  });
  // The word means something else to Codex, in its own file and on the command line.
  await world.file("home/config.toml", "");
  expect(
    await run(["config", "list", "--json"], { world, env: { CODEX_HOME: path.join(world.root, "codex") } }),
  ).toMatchObject({ code: 0 });
  const overridden = await notify(world, "list", "-c", "notify.a.type=desktop", "-c", 'notify=["program"]', "--json");
  expect(jsonLines(overridden)).toMatchObject([{ name: "a", kind: "desktop" }]);
});

test("75, 86: watch takes orders from the inbox, tells its sinks, and what is dead is shown and sent again", async () => {
  const script = [
    { calls: [{ tool: "exec_command", args: { cmd: "echo made > done.txt" } }] },
    { text: "It is done." },
  ];
  await using mock = await openMockWorld({ script });
  await using receiver = await openReceiver();
  const { world } = mock;
  const inbox = path.join(world.root, "inbox");
  const config = path.join(world.home, "config.toml");
  await appendFile(
    config,
    `[inbox]\nfolder = "${inbox}"\n[notify.hook]\nurl = "${receiver.url}"\nevents = "TASK_CREATED TASK_VERIFIED"\n`,
  );
  receiver.status = 410;
  {
    await using watching = start(["watch", "--queue"], { world, env: MOCK_KEY });
    await watching.sees(`files in ${inbox} become tasks`);
    await mkdir(inbox, { recursive: true });
    const page = `---\nworkspace: ${world.workspace}\nchecks: [{file-exists: done.txt}]\n---\nMake done.txt.\n`;
    await writeFile(path.join(inbox, "make.md"), page);
    const result = await eventually(async () => (await readdir(inbox)).find((name) => name === "make.result.md"));
    expect(await readFile(path.join(inbox, result), "utf8")).toContain("status: verified");
    await eventually(() => (receiver.bodies.length === 2 ? true : undefined));
    watching.child.kill("SIGTERM");
    expect((await watching.ended).code).toBe(143);
  }
  expect(receiver.bodies.map((body) => JSON.parse(body).event)).toEqual(["TASK_CREATED", "TASK_VERIFIED"]);

  const dead = jsonLines(await notify(world, "dead", "--json"));
  expect(dead).toMatchObject([
    { sink: "hook", event: "TASK_VERIFIED", tries: 1, message: "answered 410" },
    { sink: "hook", event: "TASK_CREATED" },
  ]);
  expect((await notify(world, "dead", "--sink", "other")).stdout).toBe("");
  expect(await notify(world, "redeliver", "ntf_none")).toMatchObject({ code: 2 });
  const again = await notify(world, "redeliver", "--all");
  expect(again.stdout).toBe(
    `${String(dead[1]?.["id"])} is queued for hook again\n${String(dead[0]?.["id"])} is queued for hook again\n`,
  );
  expect((await notify(world, "redeliver", "--all")).stdout).toBe("no dead notifications\n");

  receiver.status = 200;
  await using watching = start(["watch", "--queue"], { world, env: MOCK_KEY });
  await eventually(() => (receiver.bodies.length === 4 ? true : undefined));
  watching.child.kill("SIGTERM");
  await watching.ended;
  expect(receiver.bodies.slice(2).map((body) => JSON.parse(body).event)).toEqual(["TASK_CREATED", "TASK_VERIFIED"]);
  expect((await notify(world, "list")).stdout).toContain("2 delivered, 0 queued, 0 dead");
  const lines = await run(["verify"], { world });
  expect(lines.code).toBe(0);
});
