/**
 * `heddle serve`: every door of one engine in one process. HTTP with server-sent events and JSON-RPC over WebSocket share
 * a port, and both are on a private socket too. It runs until a signal says so; running turns get their end first.
 */
import { hostname } from "node:os";
import type { MemberOptions } from "@heddle/agent";
import { EXIT, WorkerRole } from "@heddle/protocol";
import { makeHome, storeAddress, type ConfigFile } from "@heddle/runtime/config";
import { planDoors } from "@heddle/runtime/doors";
import { logFacts } from "@heddle/runtime/telemetry";
import { openServing } from "@heddle/runtime/serving";
import { concurrencyOf, openTaskDoor, openWorker, taskDoorOptionsOf } from "@heddle/runtime/work";
import { readConfigOf } from "../config-options.ts";
import { CONFIG_OPTIONS } from "./exec-options.ts";
import { DOOR_OPTIONS, doorChoices } from "../door-options.ts";
import { LOG_OPTIONS, openLog } from "../print/log.ts";
import { say } from "../print/screen.ts";
import { GRACE_OPTION, graceMsOf, untilToLeave } from "../leaving.ts";
import { reportUnstoredEnds } from "../until-end.ts";
import { usage, type OptionSpec, type ParsedArgs } from "../args.ts";
import { STORE_OPTION, withStore } from "../store-option.ts";
import type { Command, CommandContext } from "../command.ts";
import { watchForStop } from "../stop.ts";

const OPTIONS: readonly OptionSpec[] = [
  ...DOOR_OPTIONS,
  { name: "no-ui", help: "Leave out the dashboard: serve only routes, events and WebSockets" },
  {
    name: "role",
    value: "ROLE",
    choices: ["server", "worker", "both"],
    help: "Of several at one store: doors, the inbox and notifications; tasks; or both, the default",
  },
  { name: "name", value: "NAME", help: "What others at the store call it; default: the host and the process" },
  { name: "no-tasks", help: "Leave tasks, the inbox and notifications to another process" },
  GRACE_OPTION,
  ...LOG_OPTIONS,
  STORE_OPTION,
  ...CONFIG_OPTIONS,
];

export const serveCommand: Command = {
  usage: "serve [--listen URL]... [OPTIONS]",
  about:
    "Serves threads, turns and events over HTTP with server-sent events, and over JSON-RPC as app-server does (WebSocket at\n" +
    "the same port, lines on the socket). Every TCP client shows a token: heddle token --help. The dashboard is at the\n" +
    "address in a browser: heddle dashboard logs you in. SIGTERM drains it: it begins nothing new, and what has not ended\n" +
    "after --grace is interrupted, tasks to continue with the next start.",
  options: OPTIONS,
  examples: [
    "heddle serve",
    "heddle serve --listen http://127.0.0.1:4617",
    "heddle serve --listen https://0.0.0.0:4617 --allow-host me.example --tls-cert cert.pem --tls-key key.pem",
    "heddle serve --role server",
    "heddle serve --grace 300 --log json",
    "heddle serve --listen unix:///run/user/1000/heddle.sock",
    'curl -H "Authorization: Bearer $(cat ~/.heddle/serve.token)" http://127.0.0.1:4617/api/threads',
  ],
  run,
};

async function run(args: ParsedArgs, { env: given, cwd, version }: CommandContext): Promise<number> {
  const env = withStore(args, given);
  const [extra] = args.positionals;
  if (extra !== undefined) throw usage(`serve takes no arguments, only options; what is "${extra}"?`);
  const log = openLog(args);
  const plan = await planDoors({ choices: doorChoices(args, cwd), cwd, env, what: "heddle serve", log: log.line });
  const graceMs = graceMsOf(args);
  using stop = watchForStop(undefined, graceMs + plan.stopMs);
  const configuration = await readConfigOf(args, env);
  const { config, warnings } = configuration;
  const home = await makeHome(env);
  await using ends = new AsyncDisposableStack();
  const claimed = await plan.claim(ends, home);
  const role = roleOf(args, storeAddress(config, env));
  const member = role === undefined ? undefined : memberOf(args, { role, config, version });
  const serving = await openServing(ends, { configuration, home, env, member, sockets: plan.sockets, log: log.line });
  log.use(serving.heddle.journal.redactor);
  const { heddle } = serving;
  if (log.write !== undefined) await logFacts(ends, { journal: heddle.journal, write: log.write });
  const work = { ...serving, home, config, env, log: log.line };
  const worker = role === "server" || args.has("no-tasks") ? undefined : await openWorker(ends, { ...work, role });
  const door = { ...work, journal: heddle.journal, member: heddle.member };
  const taskDoor = worker?.taskDoor ?? (role === "server" ? await openTaskDoor(ends, door) : taskDoorOptionsOf(door));
  const harness = worker?.harness;
  const more = { configWarnings: warnings, config };
  const doors = await claimed.open(ends, { ...serving, taskDoor, harness, cwd, version, ...more });
  for (const address of doors.addresses) {
    if (log.write === undefined) say(`listening on ${address}`);
    else log.write({ level: "info", event: "listening", fields: { address } });
  }
  process.stdout.write(doors.how);
  await untilToLeave({ stop, graceMs, member: heddle.member, harness, doors, log: log.line });
  await ends.disposeAsync();
  heddle.member?.fenced.throwIfAborted();
  return reportUnstoredEnds(heddle, EXIT.ok, log.line);
}

/** undefined: the only one at its store. */
function roleOf(args: ParsedArgs, store: string | undefined): WorkerRole | undefined {
  const role = args.value("role");
  if (role !== undefined) return WorkerRole.parse(role);
  return store === undefined ? undefined : "both";
}

interface Joining {
  readonly role: WorkerRole;
  readonly config: ConfigFile;
  readonly version: string;
}

function memberOf(args: ParsedArgs, { role, config, version }: Joining): MemberOptions {
  const name = args.value("name") ?? `${hostname()}-${process.pid}`;
  return { name, role, labels: [], concurrency: role === "server" ? 0 : concurrencyOf(config), version };
}
