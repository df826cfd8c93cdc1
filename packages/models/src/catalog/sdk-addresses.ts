/**
 * What models.dev leaves to the package it names for a provider: the wire, and the address where the package has one of its
 * own. And what is special about single providers.
 */
import type { CatalogProvider } from "./rows.ts";

type Wire = CatalogProvider["wire"];

interface SdkAddress {
  readonly wire: Wire;
  /** Absent: the row of the provider names it. */
  readonly baseUrl?: string;
}

export const ADDRESSES: Readonly<Record<string, SdkAddress>> = {
  "@ai-sdk/openai-compatible": { wire: "openai-chat" },
  "@openrouter/ai-sdk-provider": { wire: "openai-chat", baseUrl: "https://openrouter.ai/api/v1" },
  "@ai-sdk/openai": { wire: "openai-responses", baseUrl: "https://api.openai.com/v1" },
  "@ai-sdk/anthropic": { wire: "anthropic", baseUrl: "https://api.anthropic.com/v1" },
  "@ai-sdk/google": { wire: "gemini", baseUrl: "https://generativelanguage.googleapis.com/v1beta" },
  "@ai-sdk/groq": { wire: "openai-chat", baseUrl: "https://api.groq.com/openai/v1" },
  "@ai-sdk/cerebras": { wire: "openai-chat", baseUrl: "https://api.cerebras.ai/v1" },
  "@ai-sdk/deepinfra": { wire: "openai-chat", baseUrl: "https://api.deepinfra.com/v1/openai" },
  "@ai-sdk/mistral": { wire: "openai-chat", baseUrl: "https://api.mistral.ai/v1" },
  "@ai-sdk/togetherai": { wire: "openai-chat", baseUrl: "https://api.together.xyz/v1" },
  "@ai-sdk/perplexity": { wire: "openai-chat", baseUrl: "https://api.perplexity.ai" },
  "@ai-sdk/xai": { wire: "openai-chat", baseUrl: "https://api.x.ai/v1" },
  "@ai-sdk/cohere": { wire: "openai-chat", baseUrl: "https://api.cohere.ai/compatibility/v1" },
  "@ai-sdk/gateway": { wire: "openai-chat", baseUrl: "https://ai-gateway.vercel.sh/v1" },
  "@ai-sdk/vercel": { wire: "openai-chat", baseUrl: "https://api.v0.dev/v1" },
  "venice-ai-sdk-provider": { wire: "openai-chat", baseUrl: "https://api.venice.ai/api/v1" },
  "@aihubmix/ai-sdk-provider": { wire: "openai-chat", baseUrl: "https://aihubmix.com/v1" },
};

interface Quirk {
  /** Heddle's own name for it. */
  readonly id?: string;
  /** Why it cannot be used with a key alone. */
  readonly leaveOut?: string;
}

export const QUIRKS: Readonly<Record<string, Quirk>> = {
  google: { id: "gemini" },
  "github-copilot": { leaveOut: "it takes a login, not a key" },
};

/** Of a provider that serves some of its models over another wire. */
export const WIRE_SUFFIXES: Readonly<Record<Wire, string>> = {
  "openai-responses": "responses",
  "openai-chat": "chat",
  anthropic: "messages",
  gemini: "gemini",
};
