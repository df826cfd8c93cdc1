/** `heddle token`: who else may call `heddle serve` over TCP. A running server notices changes by itself. */
import { EXIT, HeddleError, visibleText } from "@heddle/protocol";
import { isRole, ROLES, type Principal } from "@heddle/server";
import {
  addToken,
  listBrowsers,
  listTokens,
  revokeToken,
  type BrowserLogin,
  type TokenEntry,
} from "@heddle/server/http";
import { heddleHome, makeHome } from "@heddle/runtime/config";
import { usage, type ParsedArgs } from "../args.ts";
import type { Command, CommandContext } from "../command.ts";
import { toLine } from "../print/jsonl.ts";
import { openOutput } from "../print/output.ts";
import { zonedTime } from "../print/style.ts";

export const tokenCommand: Command = {
  usage: "token add ROLE NAME\ntoken list [--json]\ntoken revoke ROLE NAME",
  about:
    "Makes, lists and revokes tokens for heddle serve. A viewer reads, a user works with threads, an owner does everything.\n" +
    "A token is shown once, when it is made; only its hash is stored. Browsers that logged in with heddle dashboard are\n" +
    "listed and revoked by the same words; with a token go the browsers that logged in by it.",
  subcommands: ["add", "list", "revoke"],
  options: [{ name: "json", of: "list", help: "One JSON object per token" }],
  examples: ["heddle token add viewer screen", "heddle token list", "heddle token revoke viewer screen"],
  run,
};

async function run(args: ParsedArgs, { env }: CommandContext): Promise<number> {
  const [word, ...rest] = args.positionals;
  const out = openOutput(process.stdout);
  if (word === "add") {
    const home = await makeHome(env);
    await out.write(`${await addToken(home, principalOf(rest, "add"))}\n`);
  } else if (word === "revoke") {
    const principal = principalOf(rest, "revoke");
    if (!(await revokeToken(heddleHome(env), principal))) {
      throw new HeddleError("usage.invalid", `there is no ${principal.role} token named ${principal.name}`);
    }
  } else if (word === "list" && rest.length === 0) {
    const home = heddleHome(env);
    const browsers = await listBrowsers(home);
    for (const entry of [...(await listTokens(home)), ...browsers]) {
      await out.write(args.has("json") ? toLine(shownOf(entry)) : lineOf(entry));
    }
  } else throw usage("write heddle token add ROLE NAME, heddle token list, or heddle token revoke ROLE NAME");
  return EXIT.ok;
}

function shownOf({ name, role, createdAt, ...more }: TokenEntry | BrowserLogin): object {
  if (!("of" in more)) return { name, role, createdAt };
  const { of, lastUsedAt, agent } = more;
  return { name, role, createdAt, of, lastUsedAt, ...(agent === undefined ? {} : { agent }) };
}

function lineOf(entry: TokenEntry | BrowserLogin): string {
  const { name, role, createdAt } = entry;
  const browser = "of" in entry ? `  browser of ${visibleText(entry.of)}, used ${zonedTime(entry.lastUsedAt)}` : "";
  return `${role.padEnd(7)} ${visibleText(name)}  ${zonedTime(createdAt)}${browser}\n`;
}

function principalOf([role, name, ...more]: readonly string[], word: string): Principal {
  if (role === undefined || name === undefined || more.length > 0 || !isRole(role)) {
    throw usage(`write heddle token ${word} ROLE NAME; a role is ${ROLES.join(", ")}`);
  }
  return { role, name };
}
