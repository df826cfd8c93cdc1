export { hooksOf, mcpServersOf } from "./extensions.ts";
export { limitOptions } from "./limits.ts";
export { withLazyLogins, withLogin } from "./logins.ts";
export { providerConfigs, resolveSettings, type Choices, type Resolved } from "./settings.ts";
export { skillChoices } from "./skill-choices.ts";
export { openWorkspace, requireFolder, requireStanding, standingOf } from "./workspace.ts";
