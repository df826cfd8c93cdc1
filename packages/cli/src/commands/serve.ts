/**
 * `heddle serve`: every door of one engine in one process. HTTP with server-sent events and JSON-RPC over WebSocket share
 * a port, and both are on a private socket too. It runs until a signal says so; running turns get their end first.
 */
import { EXIT } from "@heddle/protocol";
import { usage, type OptionSpec, type ParsedArgs } from "../args.ts";
import { CONFIG_OPTIONS, log, makeHome, readConfig, tellUnstoredEnds, untilAborted } from "../app-server/engine.ts";
import { planDoors } from "../app-server/open-doors.ts";
import { openServing } from "../app-server/open-serving.ts";
import { DOOR_OPTIONS } from "../app-server/serve-at.ts";
import type { Command, CommandContext } from "../command.ts";
import { watchForStop } from "../stop.ts";
import { deskOf } from "../tasks/open-desk.ts";
import { openWorker } from "../tasks/open-worker.ts";

const OPTIONS: readonly OptionSpec[] = [
  ...DOOR_OPTIONS,
  { name: "no-tasks", help: "Leave tasks, the inbox and notifications to another process" },
  ...CONFIG_OPTIONS,
];

export const serveCommand: Command = {
  usage: "serve [--listen URL]... [OPTIONS]",
  about:
    "Serves threads, turns and events over HTTP with server-sent events, and over JSON-RPC as app-server does (WebSocket at\n" +
    "the same port, lines on the socket). Every TCP client shows a token: heddle token --help.",
  options: OPTIONS,
  examples: [
    "heddle serve",
    "heddle serve --listen http://127.0.0.1:4617",
    "heddle serve --listen https://0.0.0.0:4617 --allow-host me.example --tls-cert cert.pem --tls-key key.pem",
    "heddle serve --listen unix:///run/user/1000/heddle.sock",
    'curl -H "Authorization: Bearer $(cat ~/.heddle/serve.token)" http://127.0.0.1:4617/api/threads',
  ],
  run,
};

async function run(args: ParsedArgs, { env, cwd, version }: CommandContext): Promise<number> {
  const [extra] = args.positionals;
  if (extra !== undefined) throw usage(`serve takes no words, only options; what is "${extra}"?`);
  const plan = await planDoors({ args, cwd, env, what: "heddle serve" });
  using stop = watchForStop(undefined, plan.stopMs);
  const { file, config, warnings } = await readConfig(args, env);
  const home = await makeHome(env);
  await using ends = new AsyncDisposableStack();
  const claimed = await plan.claim(ends, home);
  const serving = await openServing(ends, { args, env, cwd, file, config, home, sockets: plan.sockets });
  const { heddle, settings } = serving;
  const work = { heddle, settings, home, config, env };
  const worker = args.has("no-tasks") ? undefined : await openWorker(ends, work);
  const desk = worker?.desk ?? deskOf({ ...work, journal: heddle.journal });
  const harness = worker?.harness;
  const doors = await claimed.open(ends, { ...serving, desk, harness, cwd, version, configWarnings: warnings });
  for (const address of doors.addresses) log(`listening on ${address}`);
  process.stdout.write(doors.how);
  await untilAborted(stop.signal);
  await ends.disposeAsync();
  return tellUnstoredEnds(heddle, EXIT.ok);
}
