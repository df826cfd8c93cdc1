/** Built-in providers that need more than an address and a key. `docs/use/accounts.md` says how each is set up. */
import type { ProviderConfig } from "./providers.ts";

export const HOSTED_PROVIDERS: readonly ProviderConfig[] = [
  {
    id: "copilot",
    name: "GitHub Copilot",
    wire: "openai-chat",
    baseUrl: "https://api.githubcopilot.com",
    auth: { type: "copilot" },
    isLoginOnly: true,
    // The service accepts only integrations that it knows.
    headers: {
      "editor-version": "heddle/0.1.0",
      "editor-plugin-version": "heddle/0.1.0",
      "copilot-integration-id": "vscode-chat",
      "openai-intent": "conversation-agent",
    },
  },
  { id: "vertex", name: "Vertex AI", wire: "gemini", auth: { type: "vertex" }, family: "gemini" },
  {
    id: "vertex-anthropic",
    name: "Claude on Vertex AI",
    wire: "anthropic",
    auth: { type: "vertex" },
    family: "anthropic",
  },
  {
    id: "bedrock",
    name: "Amazon Bedrock",
    wire: "anthropic",
    envKey: "AWS_BEARER_TOKEN_BEDROCK",
    auth: { type: "bedrock" },
    family: "anthropic",
  },
  {
    id: "azure",
    name: "Azure OpenAI",
    wire: "openai-responses",
    envKey: "AZURE_OPENAI_API_KEY",
    auth: { type: "api-key", header: "api-key" },
    family: "openai",
  },
];
