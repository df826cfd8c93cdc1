/**
 * Keys of Codex that have no effect here: passed over with a note, also where `--strict-config` refuses what neither
 * program knows. A name of Heddle's own is never here.
 */

/** With everything below them. */
const WHOLE = setOf(`
  agents allow_login_shell analytics approvals_reviewer apps apps_mcp_product_sku audio auto_review
  background_terminal_max_timeout browser_use chatgpt_base_url check_for_update_on_startup
  cli_auth_credentials_store compact_prompt computer_use default_permissions desktop disable_paste_burst
  disable_response_storage features feedback file_opener forced_chatgpt_workspace_id forced_login_method
  ghost_snapshot goals hide_agent_reasoning history include_apps_instructions
  include_collaboration_mode_instructions include_environment_context include_permissions_instructions log_dir
  marketplaces mcp_oauth_callback_port mcp_oauth_callback_url mcp_oauth_credentials_store memories
  model_auto_compact_token_limit_scope model_catalog_json model_max_output_tokens
  model_supports_reasoning_summaries notice notify orchestrator otel permissions plan_mode_reasoning_effort
  plugins preferred_auth_method project_root_markers realtime responses_api_metadata review_model
  show_raw_agent_reasoning skills sqlite_home suppress_unstable_features_warning tool_output_token_limit
  tool_suggest tools tui windows windows_wsl_setup_acknowledged
`);

/** In tables that both programs have. */
const WITHIN: Readonly<Record<string, ReadonlySet<string>>> = {
  mcp_servers: setOf("auth environment_id http_headers_helper name omit_tools_from supports_parallel_tool_calls"),
  model_providers: setOf(
    "aws env_key_instructions supports_standalone_web_search supports_websockets websocket_connect_timeout_ms",
  ),
  sandbox_workspace_write: setOf("exclude_slash_tmp exclude_tmpdir_env_var"),
};

/** Codex does not start with a configuration in which one of these is anything but a table. */
const TABLES = setOf(`
  agents analytics apps audio auto_review browser_use computer_use desktop features feedback ghost_snapshot goals
  history marketplaces memories notice orchestrator otel permissions plugins projects realtime responses_api_metadata
  skills tool_suggest tools tui windows
`);

export function isTableOfCodex(key: readonly string[]): boolean {
  const [first = "", second] = key;
  return second === undefined && TABLES.has(first);
}

export function isOfCodex(key: readonly string[]): boolean {
  const [table = "", name = "", ...below] = key;
  if (table === "profiles" && below.length > 0) return isOfCodex(below);
  if (WHOLE.has(table) || key.at(-1)?.startsWith("experimental_") === true) return true;
  // Providers and servers have names of their own in between.
  return WITHIN[table]?.has(table === "sandbox_workspace_write" ? name : (below[0] ?? "")) === true;
}

function setOf(words: string): ReadonlySet<string> {
  return new Set(words.trim().split(/\s+/));
}
