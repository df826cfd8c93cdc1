/**
 * `heddle app-server`: the long-lived door for programs, in place of `codex app-server`. It ends when its one client on
 * standard input has gone, or when a signal says so; running turns get their end first.
 */
import path from "node:path";
import { claimStore } from "@heddle/agent";
import { EXIT } from "@heddle/protocol";
import { AppServer, stdioChannel } from "@heddle/server";
import { makeHome } from "@heddle/runtime/config";
import { listen, parseListen, readTls, refuseOpenDoor, type TokenChoice } from "@heddle/runtime/listen";
import { openServing } from "@heddle/runtime/serving";
import { readConfigOf } from "../config-options.ts";
import { callerIn } from "../exec/caller.ts";
import { CONFIG_OPTIONS } from "./exec-options.ts";
import { TLS_OPTIONS, tlsFiles } from "../door-options.ts";
import { abandonSilentOutput } from "../print/output.ts";
import { say } from "../print/screen.ts";
import { reportUnstoredEnds, untilAborted } from "../until-end.ts";
import { usage, type OptionSpec, type ParsedArgs } from "../args.ts";
import type { Command, CommandContext } from "../command.ts";
import { watchForStop } from "../stop.ts";
import { holdFolder } from "@heddle/tools/held-folder";

/** Subcommands that write the types of what this server takes and sends. */
const GENERATORS = ["generate-ts", "generate-json-schema"] as const;
type Generator = (typeof GENERATORS)[number];

const OPTIONS: readonly OptionSpec[] = [
  {
    name: "listen",
    value: "URL",
    help: "Where to listen: stdio:// (default), unix://, unix://PATH, ws://IP:PORT, wss://IP:PORT, off",
  },
  { name: "out", value: "DIR", completes: "folder", help: "Where generated types go" },
  { name: "experimental", help: "Generate types of experimental methods too" },
  { name: "prettier", value: "BIN", isForCodex: true, help: "No effect" },
  { name: "stdio", help: "Same as --listen stdio://" },
  ...CONFIG_OPTIONS,
  {
    name: "ws-auth",
    value: "MODE",
    choices: ["capability-token"],
    help: "How WebSocket clients authenticate",
  },
  { name: "ws-token-file", value: "FILE", completes: "file", help: "The token is in this file" },
  { name: "ws-token-sha256", value: "HEX", help: "The token has this SHA-256 digest" },
  {
    name: "write-root",
    value: "DIR",
    isMultiple: true,
    completes: "folder",
    help: "Where fs/* may write besides the workspaces of threads; absent: the folder it is started in",
  },
  ...TLS_OPTIONS,
  { name: "allow-non-loopback", help: "Listen where other machines can reach it, without TLS" },
  { name: "enable", value: "FEATURE", isMultiple: true, isForCodex: true, help: "A feature of Codex" },
  { name: "disable", value: "FEATURE", isMultiple: true, isForCodex: true, help: "A feature of Codex" },
  { name: "analytics-default-enabled", isForCodex: true, help: "There are no analytics" },
];

export const appServerCommand: Command = {
  usage:
    "app-server [--listen URL] [OPTIONS]\napp-server generate-ts --out DIR\napp-server generate-json-schema --out DIR",
  subcommands: GENERATORS,
  about:
    "Serves threads, turns and items over JSON-RPC, one message a line (stdio, unix) or a frame (WebSocket). Takes the\n" +
    "requests of clients of codex app-server.",
  options: OPTIONS,
  examples: [
    "heddle app-server",
    "heddle app-server --listen unix:///run/user/1000/heddle.sock",
    "heddle app-server --listen ws://127.0.0.1:4500",
    "heddle app-server --listen wss://192.0.2.7:4500 --tls-cert cert.pem --tls-key key.pem",
    "heddle app-server -c model=gpt-5.5 -c approval_policy=on-request",
  ],
  run,
};

/** Turns have six seconds to end, clients a moment to receive that; then the process ends, whatever hangs. */
const STOP_MS = 9_500;

async function run(args: ParsedArgs, context: CommandContext): Promise<number> {
  const { env, cwd, version } = context;
  const [extra, ...more] = args.positionals;
  if (isGenerator(extra) && more.length === 0) return generate(extra, args, cwd);
  if (extra !== undefined) throw usage(`app-server takes no arguments, only options; what is "${extra}"?`);
  const at = parseListen(args.value("listen") ?? "stdio://", cwd);
  if (!args.has("allow-non-loopback")) refuseOpenDoor(at, "wss");
  const tls = await readTls(tlsFiles(args, cwd), at.kind === "tcp" && at.hasTls);
  using stop = watchForStop(undefined, STOP_MS);
  const configuration = await readConfigOf(args, env);
  const home = await makeHome(env);
  // Closed in the opposite order: the server ends its turns and tells its clients, then the door goes, then the engine.
  await using ends = new AsyncDisposableStack();
  // A server on standard streams belongs to its client, as a run does; one that listens belongs to the home.
  if (at.kind !== "stdio") ends.use(await claimStore(home, "heddle app-server"));
  const sockets = at.kind === "unix" && at.path !== undefined ? [at.path] : [];
  const roots = args.values("write-root").map((root) => path.resolve(cwd, root));
  const writeRoots = roots.length === 0 ? undefined : roots;
  const serving = await openServing(ends, { configuration, home, env, sockets, writeRoots, log: say });
  const { heddle } = serving;
  const { warnings: configWarnings } = configuration;
  const originator = callerIn(env);
  const server = new AppServer({ ...serving, home, cwd, version, originator, configWarnings, log: say });
  if (at.kind === "unix" || at.kind === "tcp") {
    const listener = ends.use(await listen(at, server, { home, token: tokenChoice(args, cwd), log: say, tls }));
    say(`listening on ${listener.address}`);
  }
  ends.use(server);
  const stopped = untilAborted(stop.signal);
  await (at.kind === "stdio"
    ? Promise.race([server.accept(stdioChannel(process.stdin, process.stdout)), stopped])
    : stopped);
  await ends.disposeAsync();
  if (at.kind === "stdio") await abandonSilentOutput(process.stdout);
  return reportUnstoredEnds(heddle, stop.exitCode ?? EXIT.ok);
}

function tokenChoice(args: ParsedArgs, cwd: string): TokenChoice {
  const file = args.value("ws-token-file");
  return { file: file === undefined ? undefined : path.resolve(cwd, file), sha256: args.value("ws-token-sha256") };
}

function isGenerator(word: string | undefined): word is Generator {
  return (GENERATORS as readonly (string | undefined)[]).includes(word);
}

async function generate(which: Generator, args: ParsedArgs, cwd: string): Promise<number> {
  const out = args.value("out");
  if (out === undefined) throw usage(`${which} needs --out DIR`);
  const { jsonFiles, tsFiles } = await import("@heddle/server/describe");
  const make = which === "generate-ts" ? tsFiles : jsonFiles;
  using folder = holdFolder(path.resolve(cwd, out), { makes: true });
  folder.refuseLinksOf([cwd]);
  for (const [name, content] of make({ isExperimental: args.has("experimental") })) {
    const [file = name, ...above] = name.split("/").toReversed();
    using within = new DisposableStack();
    const parent = above.toReversed().reduce((at, part) => within.use(at.below(part)), folder);
    parent.write(file, content, { mode: 0o666 });
  }
  return EXIT.ok;
}
