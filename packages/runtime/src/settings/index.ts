export { hooksOf, mcpServersOf, messageRules } from "./extensions.ts";
export { limitOptions, outputRule } from "./extensions.ts";
export { withLazyLogins, withLogin } from "./logins.ts";
export { requireAgents } from "./require-agents.ts";
export { providerConfigs, resolveSettings, type Choices, type Resolved } from "./settings.ts";
export { skillChoices } from "./extensions.ts";
export { openWorkspace, requireFolder, requireStanding, standingOf } from "./workspace.ts";
