/** `heddle models`: which models can be asked for, by provider, and how fresh that is. */
import type { ModelListing } from "@heddle/models/accounts";
import { EXIT, visibleText } from "@heddle/protocol";
import { usage, type ParsedArgs } from "../args.ts";
import type { Command, CommandContext } from "../command.ts";
import { openOwnAccounts } from "../config/open-accounts.ts";
import { toLine } from "../print/jsonl.ts";
import { openOutput } from "../print/output.ts";

export const modelsCommand: Command = {
  usage: "models [PROVIDER] [--json] [--refresh]",
  about:
    "Lists models as PROVIDER:MODEL, the form -m takes. Providers with a key or a login are asked and remembered for five\n" +
    "minutes; where one cannot be asked, what is known of it is listed and marked.",
  options: [
    { name: "json", help: "One JSON object a provider" },
    { name: "refresh", help: "Ask again, whatever is remembered" },
  ],
  examples: ["heddle models", "heddle models anthropic --refresh", 'heddle exec -m anthropic:claude-opus-5 "hello"'],
  run,
};

async function run(args: ParsedArgs, { env }: CommandContext): Promise<number> {
  const [provider, ...more] = args.positionals;
  if (more.length > 0) throw usage("name one provider: heddle models PROVIDER");
  const out = openOutput(process.stdout);
  await using accounts = await openOwnAccounts(env);
  for (const listing of await accounts.models({ provider, isForced: args.has("refresh") })) {
    if (args.has("json")) {
      await out.write(toLine(listing));
      continue;
    }
    const note = noteOf(listing);
    if (note !== undefined) process.stderr.write(`heddle: ${visibleText(note)}\n`);
    for (const { id } of listing.models) await out.write(visibleText(`${listing.provider}:${id}\n`));
  }
  return EXIT.ok;
}

function noteOf({ provider, isLoggedIn, isStale, source, problem, models }: ModelListing): string | undefined {
  const why = problem === undefined ? "" : ` (${problem.message})`;
  if (!isLoggedIn)
    return models.length === 0 ? undefined : `${provider}: no key or login; listed is what is known of it`;
  if (!isStale) return undefined;
  const what =
    models.length === 0
      ? "nothing is known of it"
      : source === "cache"
        ? "listed is what it said before"
        : "listed is what is known of it";
  return `${provider} was not heard; ${what}${why}`;
}
