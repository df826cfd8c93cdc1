/** `heddle login`: stores a key, or logs in with a browser or a device code. What is typed or handed over is never shown. */
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import type { AccountName, Accounts, LoginState, StartedLogin } from "@heddle/models/accounts";
import { EXIT, exitCodeOf, HeddleError, reasonOf, visibleLine } from "@heddle/protocol";
import { openOwnAccounts } from "@heddle/runtime/accounts";
import { usage, type ParsedArgs } from "../args.ts";
import type { Command, CommandContext } from "../command.ts";
import { sayLine } from "../print/screen.ts";

const DEFAULT_PROVIDER = "openai";

export const loginCommand: Command = {
  usage: "login [PROVIDER] [--api-key-stdin | --browser | --device] [--profile NAME]\nlogin status",
  about:
    "Stores a key for a provider, or logs in to one that has logins, in Heddle's own credential store. PROVIDER is openai\n" +
    "unless another is named. A key in the environment is used instead of a stored one; heddle accounts shows which is used.",
  subcommands: ["status"],
  options: [
    { name: "api-key-stdin", aliases: ["with-api-key"], help: "Read the key from standard input" },
    { name: "browser", help: "Log in with a browser on this machine (openai-codex; the default there)" },
    { name: "device", aliases: ["device-auth"], help: "Log in by typing a code on any device (openai-codex, copilot)" },
    { name: "profile", value: "NAME", help: "Which of several accounts at this provider; default unless named" },
  ],
  examples: [
    "printenv MY_KEY | heddle login openai --api-key-stdin",
    "heddle login anthropic",
    "heddle config set model_providers.openai-codex.enabled true && heddle login openai-codex",
    "heddle login openai-codex --device --profile work",
    "heddle login copilot",
  ],
  run,
};

async function run(args: ParsedArgs, { env }: CommandContext): Promise<number> {
  const [provider = DEFAULT_PROVIDER, ...more] = args.positionals;
  const methods = ["api-key-stdin", "browser", "device"].filter((name) => args.has(name));
  if (more.length > 0) throw usage("name one provider: heddle login PROVIDER");
  if (methods.length > 1) throw usage(`--${methods.join(" and --")} contradict each other; give one of them`);
  await using accounts = await openOwnAccounts(env);
  if (provider === "status") return await status(accounts);
  const name = { provider, profile: args.value("profile") };
  const entry = accounts.registry.model(provider);
  const usual = (["browser", "device"] as const).find((method) => entry.authMethods.includes(method));
  const asked = args.has("device") ? "device" : args.has("browser") ? "browser" : usual;
  if (asked !== undefined) {
    if (args.has("api-key-stdin")) throw usage(`${entry.name} takes no key; write heddle login ${entry.id}`);
    return await logIn(accounts, name, asked);
  }
  if (entry.authMethods.includes("machine")) return await machine(accounts, name, entry.name);
  const { profile } = await accounts.saveKey(name, await readKey(args.has("api-key-stdin"), entry.name));
  sayLine(`the key for ${entry.id}${profile === "default" ? "" : ` (${profile})`} is stored`);
  const { source, variable } = await accounts.status(name);
  if (source === "environment") sayLine(`${variable} is set and is used instead`);
  return EXIT.ok;
}

/** Nothing is stored for it: other programs log in, and a run finds what they left. */
async function machine(accounts: Accounts, name: AccountName, shown: string): Promise<number> {
  const { isLoggedIn, place, hint } = await accounts.status(name);
  sayLine(isLoggedIn ? `${shown} needs no login: it uses ${place}` : (hint ?? `${shown}: no credentials found`));
  return isLoggedIn ? EXIT.ok : EXIT.auth;
}

/** As `codex login status`: by the exit code. */
async function status(accounts: Accounts): Promise<number> {
  const found = (await accounts.list()).filter(({ isLoggedIn, source }) => isLoggedIn && source !== "none");
  for (const { provider, source } of found) sayLine(`logged in at ${provider} (${source})`);
  if (found.length === 0) sayLine("not logged in");
  return found.length === 0 ? EXIT.turnFailed : EXIT.ok;
}

async function readKey(isPiped: boolean, name: string): Promise<string> {
  const key = isPiped ? await text(process.stdin) : await askKey(name);
  if (key.trim() === "") throw usage("there is no key on standard input");
  return key;
}

async function askKey(name: string): Promise<string> {
  if (!process.stdin.isTTY) {
    throw usage("standard input is not a terminal; pass the key with --api-key-stdin");
  }
  process.stderr.write(`Key for ${name} (not shown): `);
  process.stdin.setRawMode(true).setEncoding("utf8");
  let typed = "";
  try {
    for await (const chunk of process.stdin) {
      for (const letter of String(chunk)) {
        if (letter === "\r" || letter === "\n") return typed;
        if (letter === "\u0003" || letter === "\u0004") throw new HeddleError("login.cancelled", "nothing was stored");
        typed = letter === "\u007f" ? typed.slice(0, -1) : typed + letter;
      }
    }
    return typed;
  } finally {
    process.stdin.setRawMode(false);
    process.stderr.write("\n");
  }
}

async function logIn(accounts: Accounts, name: AccountName, method: "browser" | "device"): Promise<number> {
  sayLine(
    "this login was made for the vendor's own programs; whether you may use it with others is between you and the vendor",
  );
  const started = await accounts.startLogin(name, method);
  const cancel = (): void => void accounts.cancelLogin(started.loginId);
  process.once("SIGINT", cancel).once("SIGTERM", cancel);
  explain(started);
  const { loginId } = started;
  using _pasting = started.method === "browser" ? takePasted((line) => accounts.pasteLogin(loginId, line)) : undefined;
  return report(await accounts.loginEnded(loginId));
}

function explain(started: StartedLogin): void {
  if (started.method === "device") {
    process.stderr.write(`\nOpen ${started.verificationUrl}\nand type ${visibleLine(started.userCode)}\n\n`);
    return;
  }
  process.stderr.write(`\nOpen this address in a browser:\n\n${started.authUrl}\n\n`);
  if (started.isManual) {
    process.stderr.write(
      "Ports 1455 and 1457 are taken. If the browser cannot open the page, paste its address here.\n",
    );
  }
}

/** A user who logs in on another machine pastes the address at which the browser ended. */
export function takePasted(paste: (line: string) => void): Disposable {
  const lines = createInterface({ input: process.stdin });
  lines.on("line", (line) => {
    if (line.trim() === "") return;
    try {
      paste(line);
    } catch (error) {
      sayLine(reasonOf(error));
    }
  });
  return { [Symbol.dispose]: () => lines.close() };
}

function report({ status: ended, provider, profile, failure }: LoginState): number {
  if (ended === "completed") {
    sayLine(`logged in at ${provider}${profile === "default" ? "" : ` (${profile})`}`);
    return EXIT.ok;
  }
  sayLine(failure?.message ?? `the login has ${ended}`);
  return exitCodeOf(failure?.code ?? "login.failed");
}

/** `heddle logout`: removes one account from the credential store, after revoking the login where that is possible. */
export const logoutCommand: Command = {
  usage: "logout [PROVIDER] [--profile NAME]",
  about:
    "Revokes a login where the provider allows it and removes that one entry from Heddle's credential store. PROVIDER is\n" +
    "openai unless another is named. Logins of other programs and keys in the environment are not touched.",
  options: [{ name: "profile", value: "NAME", help: "Which of several accounts at this provider" }],
  examples: ["heddle logout", "heddle logout openai-codex --profile work"],
  async run(args, { env }) {
    const [provider = DEFAULT_PROVIDER, ...more] = args.positionals;
    if (more.length > 0) throw usage("name one provider: heddle logout PROVIDER");
    await using accounts = await openOwnAccounts(env);
    const { wasLoggedIn, isRevoked } = await accounts.logout({ provider, profile: args.value("profile") });
    const { id } = accounts.registry.find(provider);
    sayLine(wasLoggedIn ? `logged out of ${id}${revokedText(isRevoked)}` : `nothing is stored for ${id}`);
    return EXIT.ok;
  },
};

export function revokedText(isRevoked: boolean): string {
  return isRevoked ? ", and the login is revoked" : "";
}
