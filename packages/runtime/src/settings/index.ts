export { hooksOf, mcpServersOf } from "./extensions.ts";
export { limitOptions } from "./extensions.ts";
export { withLazyLogins, withLogin } from "./logins.ts";
export { providerConfigs, resolveSettings, type Choices, type Resolved } from "./settings.ts";
export { skillChoices } from "./extensions.ts";
export { openWorkspace, requireFolder, requireStanding, standingOf } from "./workspace.ts";
