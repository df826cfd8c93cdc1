/** The table `auth` of a provider, as the models package takes it. */
import type { ProviderAuth } from "@heddle/models";
import type { AuthTable } from "../config/schema.ts";

export function providerAuth(table: AuthTable): ProviderAuth {
  switch (table.type) {
    case "api-key":
      return table;
    case "command":
      return {
        type: "command",
        command: table.command,
        header: table.header,
        timeoutMs: table.timeout_ms,
        refreshSeconds: table.refresh_seconds,
        envVars: table.env_vars,
      };
    case "copilot":
      return {
        type: "copilot",
        githubUrl: table.github_url,
        githubApiUrl: table.github_api_url,
        clientId: table.client_id,
      };
    case "vertex": {
      const { credentials_file: credentialsFile, token_url: tokenUrl, ...rest } = table;
      return { ...rest, credentialsFile, tokenUrl };
    }
    case "bedrock": {
      const { credentials_file: credentialsFile, ...rest } = table;
      return { ...rest, credentialsFile };
    }
  }
}
