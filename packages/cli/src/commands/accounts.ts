/** `heddle accounts`: who is logged in where, and what a run would use. It shows no secret. */
import type { AccountStatus } from "@heddle/models/accounts";
import { EXIT, visibleText } from "@heddle/protocol";
import { openOwnAccounts } from "@heddle/runtime/accounts";
import { usage, type ParsedArgs } from "../args.ts";
import type { Command, CommandContext } from "../command.ts";
import { toLine } from "../print/jsonl.ts";
import { openScreen } from "../print/screen.ts";
import { styleFor, type Style } from "../print/style.ts";

export const accountsCommand: Command = {
  usage: "accounts [--json] [--validate]",
  about: "Shows each provider, whether it has a key or a login, where that is from, and the vendors' own programs.",
  options: [
    { name: "json", help: "One JSON object per account" },
    {
      name: "validate",
      help: "Ask each provider whether it accepts its key or login; exit code 3: one is refused, 4: one cannot be reached",
    },
  ],
  examples: ["heddle accounts", "heddle accounts --validate", "heddle accounts --json"],
  run,
};

async function run(args: ParsedArgs, { env }: CommandContext): Promise<number> {
  if (args.positionals.length > 0) throw usage("heddle accounts takes no arguments, only options");
  const out = openScreen(process.stdout, { isRaw: args.has("json") });
  await using accounts = await openOwnAccounts(env);
  const listed = await accounts.list({ validate: args.has("validate"), programs: true });
  const style = styleFor("auto", out.isTerminal, env);
  for (const account of listed) {
    if (args.has("json")) await out.write(toLine(account));
    else if (account.problem !== "missing") await out.write(`${line(account, style)}\n`);
  }
  return args.has("validate") ? validatedCode(listed) : EXIT.ok;
}

/** A server on this machine that needs no key may well be off; it is shown, and fails nothing. */
function validatedCode(listed: readonly AccountStatus[]): number {
  if (listed.some(({ health }) => health === "refused" || health === "reconnect_required")) return EXIT.auth;
  const isSilent = listed.some(({ health, source }) => health === "unreachable" && source !== "none");
  return isSilent ? EXIT.provider : EXIT.ok;
}

function line(account: AccountStatus, style: Style): string {
  const mark = markOf(account, style);
  const name = account.profile === "default" ? account.provider : `${account.provider} (${account.profile})`;
  return `${mark}   ${name.padEnd(26)} ${visibleText(detail(account))}`;
}

function markOf(account: AccountStatus, style: Style): string {
  const { isLoggedIn, isEnabled, health } = account;
  const answered = statusOf(account);
  if (!isLoggedIn || !isEnabled) return style.dim("none  ");
  if (health === "unreachable") return style.yellow(answered === undefined ? "silent" : "unsure");
  return style.bold("ok    ");
}

const HEALTH: Readonly<Record<AccountStatus["health"], string>> = {
  ok: "",
  unknown: "",
  reconnect_required: "no longer accepted; log in again",
  expired: "expired; log in again",
  refused: "refused by the provider",
  unreachable: "cannot reach the provider",
};

function detail(account: AccountStatus): string {
  const { source, variable, email, plan, health, isShadowed, isValidated } = account;
  if (!account.isEnabled)
    return `disabled; enable it with: heddle config set model_providers.${account.provider}.enabled true`;
  const from = {
    environment: `key in ${variable}${isShadowed === true ? ", used instead of what is stored" : ""}`,
    store: email === undefined ? "stored" : `logged in as ${email}${plan === undefined ? "" : ` (${plan})`}`,
    codex: `Codex's login${email === undefined ? "" : `, ${email}`}`,
    program: account.isLoggedIn
      ? "its own program is logged in"
      : `its own program: ${TEXTS[account.problem ?? ""] ?? "no answer"}`,
    machine:
      account.place === undefined
        ? (account.hint ?? "no credentials found")
        : `credentials of this machine: ${account.place}`,
    none: account.isLoggedIn ? "needs no key" : `no key or login; heddle login ${account.provider}`,
  }[source];
  const validated = isValidated && health === "ok" && source !== "program" ? "; accepted by the provider" : "";
  const answered = statusOf(account);
  if (answered !== undefined)
    return `${from}; the provider answered with status ${answered}, which does not say whether it accepts the key`;
  return `${from}${HEALTH[health] === "" ? "" : `; ${HEALTH[health]}`}${validated}`;
}

/** The status with which a provider answered that neither accepts nor refuses. */
function statusOf({ problem }: AccountStatus): string | undefined {
  return /^status_(\d+)$/.exec(problem ?? "")?.[1];
}

const TEXTS: Readonly<Record<string, string>> = {
  loggedOut: "not logged in",
  installed: "installed",
  noAnswer: "does not respond",
};
