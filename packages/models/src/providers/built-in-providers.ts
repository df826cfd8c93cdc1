/** Providers that need no configuration. Their addresses and key variables are fixed, whatever a catalog says. */
import { HOSTED_PROVIDERS } from "./hosted-providers.ts";
import type { ProviderConfig } from "./providers.ts";

/** Loading a model from disk happens before the first byte. */
const LOCAL_FIRST_BYTE_MS = 300_000;

export const BUILT_IN_PROVIDERS: readonly ProviderConfig[] = [
  {
    id: "openai",
    name: "OpenAI",
    wire: "openai-responses",
    baseUrl: "https://api.openai.com/v1",
    envKey: "OPENAI_API_KEY",
    vendor: "openai",
  },
  {
    id: "anthropic",
    name: "Anthropic",
    wire: "anthropic",
    baseUrl: "https://api.anthropic.com/v1",
    envKey: "ANTHROPIC_API_KEY",
    vendor: "anthropic",
  },
  {
    id: "gemini",
    name: "Gemini",
    wire: "gemini",
    baseUrl: "https://generativelanguage.googleapis.com/v1beta",
    envKey: ["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    vendor: "gemini",
  },
  {
    id: "openrouter",
    name: "OpenRouter",
    wire: "openai-chat",
    baseUrl: "https://openrouter.ai/api/v1",
    envKey: "OPENROUTER_API_KEY",
  },
  {
    id: "ollama",
    name: "Ollama",
    wire: "openai-chat",
    baseUrl: "http://127.0.0.1:11434/v1",
    firstByteTimeoutMs: LOCAL_FIRST_BYTE_MS,
  },
  {
    id: "lmstudio",
    name: "LM Studio",
    wire: "openai-chat",
    baseUrl: "http://127.0.0.1:1234/v1",
    firstByteTimeoutMs: LOCAL_FIRST_BYTE_MS,
  },
  { id: "scripted", name: "the scripted model", wire: "scripted" },
  {
    id: "openai-codex",
    name: "ChatGPT",
    wire: "openai-responses",
    baseUrl: "https://chatgpt.com/backend-api/codex",
    // A subscription has no price list, and the user decides about its use by other programs than the vendor's own.
    family: "openai",
    isLoginOnly: true,
    isEnabled: false,
  },
  ...HOSTED_PROVIDERS,
];
