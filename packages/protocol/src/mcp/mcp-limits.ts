/** How long an MCP server may take where its configuration does not say. */
export const MCP_STARTUP_TIMEOUT_MS = 10_000;
export const MCP_TOOL_TIMEOUT_MS = 60_000;
