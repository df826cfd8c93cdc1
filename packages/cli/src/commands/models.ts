/** `heddle models`: which models can be asked for, what is known of each and from where, and how to renew that. */
import { refreshCatalog, resetCatalog, type DescribedModel } from "@heddle/models/catalog";
import { EXIT, visibleText } from "@heddle/protocol";
import { openOwnAccounts } from "@heddle/runtime/accounts";
import { heddleHome, loadConfig } from "@heddle/runtime/config";
import { usage, type ParsedArgs } from "../args.ts";
import type { Command, CommandContext } from "../command.ts";
import { providersToList, type ListedProvider } from "../models/list-providers.ts";
import { modelLines, noteOf, refreshLines } from "../models/print-models.ts";
import { toLine } from "../print/jsonl.ts";
import { openScreen, say } from "../print/screen.ts";
import type { Output } from "../print/output.ts";

/** Of each provider, when nothing was asked for in particular. */
const SHOWN_MODELS = 20;

export const modelsCommand: Command = {
  usage: "models [PROVIDER] [--all] [--search TEXT] [--json] [--refresh | --reset]",
  about:
    "Lists models as PROVIDER:MODEL, the form -m takes, with window, longest answer, dollars for a million tokens of input and\n" +
    "output, and where that is from: built in, the snapshot of models.dev that comes with Heddle, its refreshed copy, or the\n" +
    "provider's own list. Without PROVIDER: the providers with a key or a login, the newest models of each. Providers that are\n" +
    "built in or configured are asked, and their answer is remembered for five minutes.",
  options: [
    { name: "all", help: "Every provider and every model that is known" },
    { name: "search", value: "TEXT", help: "Only names that contain this" },
    { name: "images", help: "Only models that read images" },
    { name: "min-context", value: "TOKENS", help: "Only models with at least this window" },
    { name: "json", help: "One JSON object per provider" },
    { name: "refresh", help: "Fetch the catalog of models.dev again into the home, and ask providers again" },
    { name: "reset", help: "Remove the refreshed catalog; the snapshot of this version is used again" },
  ],
  examples: [
    "heddle models",
    "heddle models groq",
    "heddle models --all --search kimi --min-context 200000",
    "heddle models --refresh",
    "heddle models --reset",
    'heddle exec -m anthropic:claude-opus-5 "hello"',
  ],
  run,
};

async function run(args: ParsedArgs, { env }: CommandContext): Promise<number> {
  const [provider, ...more] = args.positionals;
  if (more.length > 0) throw usage("name one provider: heddle models PROVIDER");
  if (args.has("refresh") && args.has("reset"))
    throw usage("--refresh and --reset contradict each other; give one of them");
  const isWanted = filterOf(args);
  const home = heddleHome(env);
  const out = openScreen(process.stdout, { isRaw: args.has("json") });
  const isJson = args.has("json");
  if (args.has("reset")) {
    const wasThere = await resetCatalog(home);
    const notice = wasThere ? "the refreshed catalog is removed" : "there is no refreshed catalog";
    await out.write(isJson ? toLine({ reset: wasThere }) : `${notice}; the snapshot of this version is in use\n`);
    return EXIT.ok;
  }
  if (args.has("refresh")) {
    const { config } = await loadConfig(env);
    const report = await refreshCatalog({ home, url: config.models_url });
    await out.write(isJson ? toLine({ refreshed: report }) : visibleText(refreshLines(report)));
  }
  await using accounts = await openOwnAccounts(env);
  const scope = provider !== undefined ? { provider } : args.has("all") ? "all" : "usable";
  const listed = await providersToList({ accounts, env, home, scope, isForced: args.has("refresh") });
  const isBrief = scope === "usable" && !args.has("search");
  for (const { listing, models } of listed) {
    const wanted = models.filter((model) => isWanted(listing.provider, model));
    if (isJson) await out.write(toLine({ ...listing, models: wanted }));
    else await printModels({ listing, models: wanted }, isBrief ? SHOWN_MODELS : Number.POSITIVE_INFINITY, out);
    const note = isJson || scope === "all" ? undefined : noteOf(listing);
    if (note !== undefined) say(note);
  }
  if (listed.length === 0) {
    process.stderr.write(
      "heddle: no provider has a key or a login; heddle models --all lists all that are known, heddle login PROVIDER stores a key\n",
    );
  }
  return EXIT.ok;
}

async function printModels({ listing, models }: ListedProvider, max: number, out: Output): Promise<void> {
  for (const line of modelLines(listing.provider, models.slice(0, max))) await out.write(visibleText(`${line}\n`));
  const rest = models.length - max;
  if (rest > 0)
    process.stderr.write(`heddle: ${rest} more of ${listing.provider}: heddle models ${listing.provider}\n`);
}

function filterOf(args: ParsedArgs): (provider: string, model: DescribedModel) => boolean {
  const text = args.value("search")?.toLowerCase();
  const least = args.value("min-context");
  if (least !== undefined && !/^[1-9]\d{0,9}$/.test(least))
    throw usage("--min-context takes a number of tokens: 200000");
  return (provider, model) =>
    (text === undefined || `${provider}:${model.id}`.toLowerCase().includes(text)) &&
    (!args.has("images") || model.readsImages === true) &&
    (least === undefined || (model.contextTokens ?? 0) >= Number(least));
}
