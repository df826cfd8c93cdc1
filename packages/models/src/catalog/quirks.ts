/**
 * What single providers and models do differently, as rows; wires ask for a trait and know no names. The first row that
 * matches is used; what the catalog knows of a model has precedence.
 */
import type { ModelInfo } from "./catalog.ts";
import type { Provider } from "../providers/providers.ts";

type Traits = Pick<ModelInfo, "isReasoning" | "readsImages" | "efforts" | "outputLimit" | "hasVerbosity">;

interface ModelRow extends Traits {
  /** Of the name without vendor, date and variant. */
  readonly model: RegExp;
}

const THREE = ["low", "medium", "high"] as const;
/** OpenAI's reasoning models, at any provider. */
const REASONS = { isReasoning: true, outputLimit: "max_completion_tokens" } as const;
const SINCE_FIVE = { ...REASONS, hasVerbosity: true } as const;

const MODEL_ROWS: readonly ModelRow[] = [
  { model: /^(gpt-3|gpt-4-0|text-)/, isReasoning: false, readsImages: false },
  { model: /^(gpt-4|chatgpt-4)/, isReasoning: false },
  { model: /^gpt-5(\.\d+)?-chat/, isReasoning: false, outputLimit: "max_completion_tokens" },
  { model: /^o[13]-(mini|preview)/, ...REASONS, readsImages: false, efforts: THREE },
  { model: /^o\d/, ...REASONS, efforts: THREE },
  { model: /^gpt-oss/, isReasoning: true, readsImages: false, efforts: THREE },
  { model: /^gpt-5-pro/, ...SINCE_FIVE, efforts: ["high"] },
  { model: /^gpt-5(\.1)?-codex(-mini)?$/, ...REASONS, efforts: THREE },
  { model: /^gpt-5\.1-codex-max/, ...REASONS, efforts: [...THREE, "xhigh"] },
  { model: /^gpt-5\.1/, ...SINCE_FIVE, efforts: ["none", ...THREE] },
  { model: /^gpt-5(?!\.)/, ...SINCE_FIVE, efforts: ["minimal", ...THREE] },
  { model: /^gpt-5\.[2-5]/, ...SINCE_FIVE, efforts: ["none", ...THREE, "xhigh"] },
  { model: /^gpt-([5-9]|\d\d)/, ...SINCE_FIVE },
  { model: /^claude-(opus|sonnet)-4-6/, isReasoning: true, efforts: [...THREE, "max"] },
  { model: /^deepseek-(chat|reasoner|coder|r\d|v\d)/, readsImages: false },
  {
    model: /^(glm-4\.[56](-air|-flash)?|kimi-k2(-thinking|-turbo)?|qwen3-coder|devstral|codestral)$/,
    readsImages: false,
  },
];

export function traitsOf(bareModel: string): Traits {
  const { model: _, ...traits } = MODEL_ROWS.find(({ model }) => model.test(bareModel)) ?? { model: /^/ };
  return traits;
}

export type CallIdRule = "anthropic" | "nine-characters" | "any";

interface ProviderRow {
  /** One of the two: its id, or the end of its host name. */
  readonly id?: string;
  readonly host?: string;
  /** The field that limits the output; `none`: it accepts none. */
  readonly outputLimit?: "max_completion_tokens" | "none";
  readonly callIds?: CallIdRule;
}

const PROVIDER_ROWS: readonly ProviderRow[] = [
  { id: "openai-codex", outputLimit: "none" },
  { host: ".azure.com", outputLimit: "max_completion_tokens" },
  { host: ".mistral.ai", callIds: "nine-characters" },
];

type Asked = Pick<Provider, "id" | "baseUrl" | "wire" | "vendor">;

function rowOf({ id, baseUrl }: Asked): ProviderRow {
  const host = URL.parse(baseUrl)?.hostname ?? "";
  const fits = (row: ProviderRow): boolean => row.id === id || (row.host !== undefined && host.endsWith(row.host));
  return PROVIDER_ROWS.find(fits) ?? {};
}

export function callIdRule(provider: Asked): CallIdRule {
  return rowOf(provider).callIds ?? (provider.wire === "anthropic" ? "anthropic" : "any");
}

/** The field for a limit of the output; undefined: it is not sent. */
export function outputLimitField(
  provider: Asked,
  info: Pick<ModelInfo, "outputLimit">,
): "max_output_tokens" | "max_completion_tokens" | "max_tokens" | undefined {
  const { outputLimit } = rowOf(provider);
  if (outputLimit === "none") return undefined;
  if (provider.wire === "openai-responses") return "max_output_tokens";
  const own = provider.vendor === "openai" ? "max_completion_tokens" : undefined;
  return outputLimit ?? own ?? info.outputLimit ?? "max_tokens";
}
