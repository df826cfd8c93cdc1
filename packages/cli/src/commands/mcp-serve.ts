/**
 * `heddle mcp serve`: Heddle as an MCP server on standard input and output, for one client: its own tools, or those of an
 * envelope. It ends when the client closes its input, or when a signal says so; turns that were started here get their end
 * first.
 */
import { EXIT } from "@heddle/protocol";
import { LOCAL_OWNER, RunningTurns, stdioChannel, type SettingsResolver } from "@heddle/server";
import { envelopeSurface, heddleSurface, serveMcpChannel, type ToolSurface } from "@heddle/server/mcp";
import { makeHome } from "@heddle/runtime/config";
import { openServing } from "@heddle/runtime/serving";
import { openWorker, taskDoorOptionsOf } from "@heddle/runtime/work";
import { envelopeFolders, readEnvelopes } from "@heddle/tools/envelopes";
import { readConfigOf } from "../config-options.ts";
import type { ParsedArgs } from "../args.ts";
import type { CommandContext } from "../command.ts";
import { abandonOutput } from "../print/output.ts";
import { say } from "../print/screen.ts";
import { watchForStop } from "../stop.ts";
import { reportUnstoredEnds, untilAborted } from "../until-end.ts";

/** Turns have six seconds to end; then the process ends, whatever hangs. */
const STOP_MS = 9_500;

export async function serve(args: ParsedArgs, { env, cwd, version }: CommandContext): Promise<number> {
  using stop = watchForStop(undefined, STOP_MS);
  const configuration = await readConfigOf(args, env);
  const home = await makeHome(env);
  const envelope = args.value("envelope");
  // A name that nobody knows is refused before a client waits for it.
  if (envelope !== undefined) readEnvelopes(envelopeFolders(home, cwd)).entry(envelope);
  await using ends = new AsyncDisposableStack();
  const isUnattended = !args.has("ask");
  const serving = await openServing(ends, { configuration, home, env, isUnattended, log: say });
  const { heddle } = serving;
  const { config } = configuration;
  const work = { heddle, settings: serving.settings, home, config, env, log: say };
  const taskDoor = args.has("tasks")
    ? (await openWorker(ends, work)).taskDoor
    : taskDoorOptionsOf({ ...work, journal: heddle.journal });
  const turns = new RunningTurns(heddle);
  ends.defer(() => turns.end());
  const settings = isUnattended ? withoutQuestions(serving.settings) : serving.settings;
  const context = { heddle, settings, turns, taskDoor, cwd, version };
  const caller = { context, principal: LOCAL_OWNER, by: `user:${LOCAL_OWNER.name}`, log: say } as const;
  const surface: ToolSurface = ends.use(
    envelope === undefined ? heddleSurface(caller) : envelopeSurface({ ...caller, envelope }),
  );
  const stopped = untilAborted(stop.signal);
  const channel = stdioChannel(process.stdin, process.stdout);
  const served = serveMcpChannel(channel, { surface, version, log: say });
  await Promise.race([served, stopped]);
  await surface[Symbol.asyncDispose]();
  if (args.has("finish")) await Promise.race([turns.finished(), stopped]);
  await ends.disposeAsync();
  channel.close();
  await served;
  abandonOutput(process.stdout);
  return reportUnstoredEnds(heddle, stop.exitCode ?? EXIT.ok);
}

/** As in exec: an agent that nobody answers is not offered to ask. */
function withoutQuestions(settings: SettingsResolver): SettingsResolver {
  return {
    resolve: (request) =>
      settings.resolve({ ...request, patch: { ...request.patch, approvalPolicy: "never", asksUser: false } }),
  };
}
