/**
 * A thread under `explore` and its child, in which one attack is tried in every way by which a thread runs something; prints what
 * came of it as JSON. A program, so that it can be started as another user. Arguments: the back-end, an empty folder, and the MCP
 * server that runs what it is asked to.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { chmodSync, lstatSync, mkdirSync, readFileSync, readdirSync, readlinkSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import type { EventBody } from "@heddle/protocol";
import { COMMANDS, DIAL, GIT_COMMANDS, attackScript, hostileGit } from "./explore-attacks.ts";
import { call, ofType, openChildWorld, settled } from "./child-world.ts";

export interface ExploreReport {
  readonly uid: number;
  readonly level: string;
  readonly status: string;
  /** Ways in which the attack was begun, as its own output tells. */
  readonly ran: readonly string[];
  /** Of the workspace, by path, kind, mode and content. */
  readonly changed: readonly string[];
  /** Files beside workspace and home. */
  readonly outside: readonly string[];
  /** Sockets of the host that something was connected to or sent to. */
  readonly reached: readonly string[];
  /** What the attack read of the home, of its keys and of secrets in the environment. */
  readonly read: readonly string[];
  /** Commands without an intent on record. */
  readonly withoutIntent: readonly string[];
  readonly intents: number;
  readonly ends: readonly string[];
  readonly hooks: number;
  /** The same attack by the user's own shell. */
  readonly control: Pick<ExploreReport, "changed" | "outside" | "reached" | "read">;
}

const [, , backend = "", folder = "", server = ""] = process.argv;
const workspace = join(folder, "workspace");
const beside = join(folder, "beside");
for (const path of [workspace, beside]) mkdirSync(path, { recursive: true });

const reached = new Set<string>();
const everything = Promise.withResolvers<void>();
const reach = (what: string) => {
  reached.add(what);
  if (reached.size === 4) everything.resolve();
};
const listener = (what: string) =>
  createServer((socket) => {
    reach(what);
    socket.destroy();
  });
const tcp = listener("tcp").listen(0, "127.0.0.1");
const unix = listener("unix").listen(join(beside, "s"));
const abstract = listener("abstract").listen(`\0heddle-explore-${process.pid}`);
const udp = createSocket("udp4", () => reach("udp")).bind(0, "127.0.0.1");
await Promise.all([tcp, unix, abstract, udp].map((socket) => once(socket, "listening")));
const portOf = (address: AddressInfo | string | null): number =>
  typeof address === "object" ? (address?.port ?? 0) : 0;

const sh = (cmd: string) => call("exec_command", { cmd });
const ran = (who: string): string => `sh ./attack.sh ${who}`;
const runs = (who: string) => call("mcp__fix__run", { cmd: ran(who) });
const commands = [
  ...COMMANDS,
  ...GIT_COMMANDS,
  ran("command"),
  `python3 -c 'import subprocess; subprocess.run(["sh", "-c", "setsid ${ran("grandchild")}"])'`,
  `(setsid ${ran("orphan")} &) | cat`,
];
await using world = await openChildWorld(
  {
    parent: [
      ...commands.map(sh),
      call("apply_patch", { input: "*** Begin Patch\n*** Add File: made\n+x\n*** End Patch\n" }),
      runs("server"),
      call("spawn_agent", { message: "be the child" }),
      (ids: readonly string[]) => call("wait_agent", { targets: ids }),
      { text: "done" },
    ],
    "be the child": [sh(ran("child")), runs("server-of-child"), { text: "tried" }],
  },
  {
    folder,
    settings: { envelope: "explore" },
    sandboxBackend: backend === "bwrap" ? "bwrap" : "namespaces",
    env: { OPENAI_API_KEY: "CANARY-OF-A-KEY", SSH_AUTH_SOCK: "/CANARY-OF-AN-AGENT", GITHUB_TOKEN: "CANARY-TOKEN" },
    mcpServers: [{ name: "fix", command: process.execPath, args: [server, "runs"], approval: "auto" }],
    hooks: [
      { event: "SessionStart", command: `${ran("hook")}; true` },
      { event: "PreToolUse", command: "touch written-by-hook; echo hi > src/x; true" },
    ],
  },
);
const { t } = world;
writeFileSync(join(t.home, "token"), "CANARY-OF-THE-HOME\n", { mode: 0o600 });
mkdirSync(join(workspace, "src/empty"), { recursive: true });
writeFileSync(join(workspace, "src/x"), "one\n");
writeFileSync(join(workspace, "src/y"), "two\n");
writeFileSync(join(workspace, "src/package.json"), '{"name":"inner","version":"1.0.0"}\n');
writeFileSync(join(workspace, "dial.mjs"), DIAL);
const dial = [portOf(tcp.address()), portOf(udp.address()), join(beside, "s"), `heddle-explore-${process.pid}`];
writeFileSync(
  join(workspace, "attack.sh"),
  attackScript({ workspace, beside, home: t.home, dial, secrets: filesOf(t.home) }),
);
const git = (...args: readonly string[]): void => {
  execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...args], { cwd: workspace, stdio: "ignore" });
};
git("init", "-q");
git("add", ".");
git("commit", "-qm", "1");
git("commit", "-qm", "2", "--allow-empty");
hostileGit({ workspace, run: (who) => `sh ${join(workspace, "attack.sh")} ${who}`, git });
chmodSync(join(workspace, "src/y"), 0o640);

const before = manifest(workspace);
const turn = await t.start("parent");
const { body: end } = await turn.done;
const own = await t.events(turn.threadId);
const [child] = await t.heddle.journal.threads.childrenOf(turn.threadId, { limit: 9 });
const events = [...own, ...(await t.events(child?.id ?? ""))];
const bodies: readonly EventBody[] = events.map(({ body }) => body);
const output = bodies
  .filter(({ type }) => type === "tool.settled" || type === "hook.ran")
  .map((body) => JSON.stringify(body));
const intended = ofType(events, "tool.intended").map((body) => JSON.stringify(body.arguments));
const held = { ...harm(output.join("\n")), outside: namesIn(beside) };

const control = spawnSync("sh", ["./attack.sh", "control"], { cwd: workspace, encoding: "utf8" });
await Promise.race([everything.promise, setTimeout(5_000, undefined, { ref: false })]);
const report: ExploreReport = {
  uid: process.getuid?.() ?? -1,
  level: ofType(own, "sandbox.opened")[0]?.level ?? "none",
  status: end.status,
  ran: [...new Set([...output.join("\n").matchAll(/attack by ([a-z-]+)/g)].map(([, who = ""]) => who))].toSorted(),
  ...held,
  withoutIntent: commands.filter((cmd) => !intended.includes(JSON.stringify({ cmd }))),
  intents: intended.length,
  ends: settled(events).map(({ tool, outcome }) => `${tool} ${outcome}`),
  hooks: ofType(events, "hook.ran").length,
  control: { ...harm(control.stdout), outside: namesIn(beside) },
};
process.stdout.write(JSON.stringify(report));
for (const socket of [tcp, unix, abstract, udp]) socket.close();

function harm(text: string): Pick<ExploreReport, "changed" | "reached" | "read"> {
  return {
    changed: differences(before, manifest(workspace)),
    reached: [...reached].toSorted(),
    read: [...new Set([...text.matchAll(/has read ([\w.:/-]+)/g)].map(([, what = ""]) => what))].toSorted(),
  };
}

function filesOf(top: string): readonly string[] {
  return readdirSync(top, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

function namesIn(path: string): readonly string[] {
  return readdirSync(path).filter((name) => name !== "s");
}

function manifest(top: string): ReadonlyMap<string, string> {
  const found = new Map([[top, lstatSync(top).mode.toString(8)]]);
  for (const entry of readdirSync(top, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    const content = entry.isFile() ? readFileSync(path) : entry.isSymbolicLink() ? readlinkSync(path) : "";
    const { mode, mtimeMs } = lstatSync(path);
    found.set(path, `${mode.toString(8)} ${mtimeMs} ${createHash("sha256").update(content).digest("hex")}`);
  }
  return found;
}

function differences(was: ReadonlyMap<string, string>, is: ReadonlyMap<string, string>): readonly string[] {
  return [...new Set([...was.keys(), ...is.keys()])].filter((path) => was.get(path) !== is.get(path));
}
