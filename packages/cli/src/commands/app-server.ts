/**
 * `heddle app-server`: the long-lived door for programs, in place of `codex app-server`. It ends when its one client on
 * standard input has gone, or when a signal says so; running turns get their end first.
 */
import { mkdir } from "node:fs/promises";
import { openHeddle } from "@heddle/agent";
import { EXIT, isHeddleError, visibleText } from "@heddle/protocol";
import type { ProviderConfig } from "@heddle/models";
import { AppServer, stdioChannel } from "@heddle/server";
import { usage, type OptionSpec, type ParsedArgs } from "../args.ts";
import { listen, parseListen, refuseOpenDoor } from "../app-server/listen.ts";
import { settingsSource } from "../app-server/settings-source.ts";
import type { Command, CommandContext } from "../command.ts";
import { hooksOf, mcpServersOf } from "../config/extensions.ts";
import { withLogin } from "../config/logins.ts";
import { parseOverrides } from "../config/check-config.ts";
import { heddleHome, loadConfig } from "../config/read-config.ts";
import type { ConfigFile } from "../config/schema.ts";
import { effectiveConfig, providerConfigs } from "../config/settings.ts";
import { watchForStop } from "../stop.ts";

const OPTIONS: readonly OptionSpec[] = [
  {
    name: "listen",
    value: "URL",
    help: "Where clients come from: stdio:// (default), unix://, unix://PATH, ws://IP:PORT, off",
  },
  { name: "stdio", help: "Same as --listen stdio://" },
  {
    name: "config",
    short: "c",
    value: "KEY=VALUE",
    isMultiple: true,
    help: "Override a key of config.toml; VALUE is TOML, or text",
  },
  { name: "profile", short: "p", value: "NAME", help: "Use [profiles.NAME] of config.toml" },
  { name: "ignore-user-config", help: "Read no config.toml" },
  { name: "strict-config", help: "Refuse unknown keys in Codex's config.toml too" },
  {
    name: "ws-auth",
    value: "MODE",
    choices: ["capability-token"],
    help: "How WebSocket clients show who they are; there is one way",
  },
  { name: "ws-token-file", value: "FILE", completes: "file", help: "The token is in this file" },
  { name: "ws-token-sha256", value: "HEX", help: "The token has this SHA-256 digest" },
  { name: "allow-non-loopback", help: "Listen where other machines can reach it, without TLS" },
  { name: "enable", value: "FEATURE", isMultiple: true, isHidden: true, help: "A feature of Codex" },
  { name: "disable", value: "FEATURE", isMultiple: true, isHidden: true, help: "A feature of Codex" },
  { name: "analytics-default-enabled", isHidden: true, help: "There are no analytics" },
];

export const appServerCommand: Command = {
  usage: "app-server [--listen URL] [OPTIONS]",
  about:
    "Serves threads, turns and items over JSON-RPC, one message a line (stdio, unix) or a frame (WebSocket). Takes the\n" +
    "requests of clients of codex app-server.",
  options: OPTIONS,
  examples: [
    "heddle app-server",
    "heddle app-server --listen unix:///run/user/1000/heddle.sock",
    "heddle app-server --listen ws://127.0.0.1:4500",
    "heddle app-server -c model=gpt-5.5 -c approval_policy=on-request",
  ],
  run,
};

/** Turns have six seconds for their end, clients a moment to hear of it; then it is over, whatever hangs. */
const STOP_MS = 9_500;

async function run(args: ParsedArgs, context: CommandContext): Promise<number> {
  const { env, cwd, version } = context;
  const [extra] = args.positionals;
  if (extra !== undefined) throw usage(`app-server takes no words, only options; what is "${extra}"?`);
  const at = parseListen(args.value("listen") ?? "stdio://", cwd);
  refuseOpenDoor(at, args);
  using stop = watchForStop(undefined, STOP_MS);
  const { file, config } = await readConfig(args, env);
  const home = heddleHome(env);
  await mkdir(home, { recursive: true, mode: 0o700 });
  // Closed in the opposite order: the server ends its turns and tells its clients, then the door goes, then the engine.
  await using ends = new AsyncDisposableStack();
  const heddle = ends.use(
    await openHeddle({
      home,
      providers: await providersOf(config, env),
      env,
      isUnattended: false,
      mcpServers: await mcpServersOf(config, env),
      hooks: hooksOf(config),
    }),
  );
  if (heddle.recoveredTurns > 0) log(`${heddle.recoveredTurns} turns of dead processes were closed`);
  const settings = settingsSource({ file, overrides: args.values("config"), profile: args.value("profile"), env });
  const server = new AppServer({ heddle, settings, home, cwd, version, log });
  if (at.kind === "unix" || at.kind === "tcp") {
    const listener = ends.use(await listen(at, server, { args, home, cwd, log }));
    log(`listening on ${listener.address}`);
  }
  ends.use(server);
  const stopped = untilAborted(stop.signal);
  await (at.kind === "stdio"
    ? Promise.race([server.accept(stdioChannel(process.stdin, process.stdout)), stopped])
    : stopped);
  await ends.disposeAsync();
  return stop.exitCode ?? EXIT.ok;
}

function untilAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    // The timer keeps the process alive while nothing else does.
    const alive = setInterval(() => undefined, 60_000);
    signal.addEventListener(
      "abort",
      () => {
        clearInterval(alive);
        resolve();
      },
      { once: true },
    );
  });
}

async function readConfig(
  args: ParsedArgs,
  env: NodeJS.ProcessEnv,
): Promise<{ readonly file: ConfigFile; readonly config: ConfigFile }> {
  const profile = args.value("profile");
  const loading = { isIgnored: args.has("ignore-user-config"), isStrict: args.has("strict-config"), profile };
  const { config: overrides, passedOver } = parseOverrides(args.values("config"), loading);
  const { config: file } = await loadConfig(env, loading);
  if (passedOver.length > 0) log(`unknown configuration keys, without effect here: ${passedOver.join(", ")}`);
  return { file, config: effectiveConfig({ file, overrides }, profile) };
}

/** A server without a key still lists and reads; the first turn says what is missing. */
async function providersOf(config: ConfigFile, env: NodeJS.ProcessEnv): Promise<readonly ProviderConfig[]> {
  const configs = providerConfigs(config, {}, env);
  try {
    return await withLogin(configs, config.model_provider ?? "openai", env);
  } catch (error) {
    if (isHeddleError(error) && error.code === "auth.missing") return configs;
    throw error;
  }
}

function log(line: string): void {
  process.stderr.write(`heddle: ${visibleText(line)}\n`);
}
