/** What `heddle models` shows to people. Pure. */
import type { ModelListing } from "@heddle/models/accounts";
import type { DescribedModel, RefreshReport } from "@heddle/models/catalog";

/** A longer name pushes its own line only. */
const MAX_NAME_CHARS = 56;
const MAX_NAMED = 8;

export function modelLines(provider: string, models: readonly DescribedModel[]): readonly string[] {
  const names = models.map(({ id }) => `${provider}:${id}`);
  const width = Math.min(MAX_NAME_CHARS, Math.max(0, ...names.map((name) => name.length)));
  return models.map((model, index) => {
    const { contextTokens, maxOutputTokens, windowTokens, price, origin } = model;
    const isNarrow = windowTokens !== undefined && contextTokens !== undefined && windowTokens < contextTokens;
    const window = isNarrow ? `${short(contextTokens)} (${short(windowTokens)})` : short(contextTokens);
    const marks = [model.hasTools === false ? "no tools" : "", model.isDeprecated === true ? "deprecated" : ""];
    const columns = [
      (names[index] ?? "").padEnd(width),
      window.padEnd(13),
      short(maxOutputTokens).padEnd(5),
      priceText(price).padEnd(14),
      `${ORIGINS[origin.kind]} ${origin.date.slice(0, 10)}`.trimEnd(),
      ...marks.filter((mark) => mark !== ""),
    ];
    return columns.join("  ").trimEnd();
  });
}

const ORIGINS: Readonly<Record<DescribedModel["origin"]["kind"], string>> = {
  "built-in": "built in",
  snapshot: "snapshot",
  refreshed: "refreshed",
  provider: "listed",
};

function short(tokens: number | undefined): string {
  if (tokens === undefined) return "-";
  if (tokens < 10_000) return String(tokens);
  return tokens < 1_000_000 ? `${Math.round(tokens / 1000)}k` : `${Number((tokens / 1_000_000).toFixed(2))}M`;
}

function priceText(price: DescribedModel["price"]): string {
  if (price === undefined) return "-";
  const steps = (price.tiers ?? []).map((tier) => `, over ${short(tier.overTokens)} $${tier.input}/$${tier.output}`);
  return `$${price.input}/$${price.output}${steps.join("")}`;
}

/** Why a list is not what the provider says now, where that could be expected. */
export function noteOf({ provider, isLoggedIn, isStale, source, problem, models }: ModelListing): string | undefined {
  const why = problem === undefined ? "" : ` (${problem.message})`;
  if (!isLoggedIn)
    return problem === undefined ? undefined : `${provider}: no key or login; listed is what is known of it${why}`;
  // One that was not asked needs no explanation.
  if (!isStale || (problem === undefined && models.length === 0)) return undefined;
  const what = source === "cache" ? "listed is what it said before" : "listed is what is known of it";
  const failed =
    problem?.code === "provider.unreachable" || problem === undefined ? "cannot reach" : "no list of models from";
  return `${failed} ${provider}; ${what}${why}`;
}

export function refreshLines(report: RefreshReport): string {
  const { before, leftOut, changedAddresses } = report;
  const earlier = before === undefined ? "nothing" : `${before.kind} of ${before.date.slice(0, 10)}`;
  const lines = [
    `${report.url}: ${report.providers} providers, ${report.models} models, kept in ${report.file} (before: ${earlier})`,
    `  models: ${report.addedModels} added, ${report.removedModels} removed, ${report.changedModels} changed`,
    ...named("providers added", report.addedProviders),
    ...named("providers removed", report.removedProviders),
    ...changedAddresses.map(({ provider, from, to }) => `  address of ${provider}: ${from} -> ${to}`),
    ...(report.unusableModels === 0
      ? []
      : [`  models left out (not understood, or limits that cannot be true): ${report.unusableModels}`]),
    ...named(
      "left out",
      leftOut.map(({ provider, why }) => `${provider} (${why})`),
    ),
  ];
  return `${lines.join("\n")}\n`;
}

function named(what: string, names: readonly string[]): readonly string[] {
  if (names.length === 0) return [];
  const rest = names.length - MAX_NAMED;
  return [`  ${what}: ${names.slice(0, MAX_NAMED).join(", ")}${rest > 0 ? `, and ${rest} more` : ""}`];
}
