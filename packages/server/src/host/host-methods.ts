/** The methods about the machine that the server runs on: files, commands, search, configuration, accounts. */
import {
  AccountReadParams,
  CancelLoginParams,
  CommandExecParams,
  CommandExecResizeParams,
  CommandExecTerminateParams,
  CommandExecWriteParams,
  ConfigBatchWriteParams,
  ConfigReadParams,
  ConfigValueWriteParams,
  FsCopyParams,
  FsCreateDirectoryParams,
  FsPathParams,
  FsRemoveParams,
  FsUnwatchParams,
  FsWatchParams,
  FsWriteFileParams,
  FuzzyFileSearchParams,
  GitDiffToRemoteParams,
  HooksListParams,
  LoginAccountParams,
  McpOauthLoginParams,
  McpResourceReadParams,
  McpServerStatusListParams,
  McpToolCallParams,
  NoParams,
  PageParams,
  SkillsConfigWriteParams,
  SkillsExtraRootsParams,
} from "@heddle/dialects/codex-app-server";
import {
  cancelLogin,
  logout,
  readAccount,
  readAuthStatus,
  readRateLimits,
  startLogin,
} from "../codex/handlers/accounts.ts";
import { execCommand, resizeCommand, terminateCommand, writeCommand } from "../codex/handlers/command.ts";
import { readConfig, readConfigRequirements, writeConfigBatch, writeConfigValue } from "../codex/handlers/config.ts";
import { fuzzyFileSearch } from "../codex/handlers/file-search.ts";
import {
  copy,
  createDirectory,
  getMetadata,
  readDirectory,
  readFile,
  remove,
  writeFile,
} from "../codex/handlers/files.ts";
import { gitDiffToRemote } from "../codex/handlers/git-diff.ts";
import { listHooks } from "../codex/handlers/hooks.ts";
import {
  callMcpTool,
  listMcpStatus,
  loginMcpServer,
  readMcpResource,
  reloadMcpServers,
} from "../codex/handlers/mcp.ts";
import { listCollaborationModes, listFeatures, readProviderCapabilities } from "../codex/handlers/offers.ts";
import { setSkillRoots, writeSkillConfig } from "../codex/handlers/skills.ts";
import { unwatch, watch } from "../codex/handlers/watch.ts";
import { row, type Method } from "../rpc/method.ts";

export const HOST_METHODS: Readonly<Record<string, Method>> = {
  "account/read": row(AccountReadParams, readAccount),
  getAuthStatus: row(NoParams, readAuthStatus),
  "config/read": row(ConfigReadParams, readConfig),
  "fs/readFile": row(FsPathParams, readFile),
  "fs/writeFile": row(FsWriteFileParams, writeFile),
  "fs/createDirectory": row(FsCreateDirectoryParams, createDirectory),
  "fs/getMetadata": row(FsPathParams, getMetadata),
  "fs/readDirectory": row(FsPathParams, readDirectory),
  "fs/remove": row(FsRemoveParams, remove),
  "fs/copy": row(FsCopyParams, copy),
  "fs/watch": row(FsWatchParams, watch),
  "fs/unwatch": row(FsUnwatchParams, unwatch),
  "command/exec": row(CommandExecParams, execCommand),
  "command/exec/write": row(CommandExecWriteParams, writeCommand),
  "command/exec/terminate": row(CommandExecTerminateParams, terminateCommand),
  "command/exec/resize": row(CommandExecResizeParams, resizeCommand),
  fuzzyFileSearch: row(FuzzyFileSearchParams, fuzzyFileSearch),
  gitDiffToRemote: row(GitDiffToRemoteParams, gitDiffToRemote),
  "skills/extraRoots/set": row(SkillsExtraRootsParams, setSkillRoots),
  "skills/config/write": row(SkillsConfigWriteParams, writeSkillConfig),
  "hooks/list": row(HooksListParams, listHooks),
  "config/value/write": row(ConfigValueWriteParams, writeConfigValue),
  "config/batchWrite": row(ConfigBatchWriteParams, writeConfigBatch),
  "configRequirements/read": row(NoParams, readConfigRequirements),
  "experimentalFeature/list": row(PageParams, listFeatures),
  "collaborationMode/list": row(NoParams, listCollaborationModes),
  "modelProvider/capabilities/read": row(NoParams, readProviderCapabilities),
  "mcpServerStatus/list": row(McpServerStatusListParams, listMcpStatus),
  "mcpServer/tool/call": row(McpToolCallParams, callMcpTool),
  "mcpServer/resource/read": row(McpResourceReadParams, readMcpResource),
  "mcpServer/oauth/login": row(McpOauthLoginParams, loginMcpServer),
  "config/mcpServer/reload": row(NoParams, reloadMcpServers),
  "account/login/start": row(LoginAccountParams, startLogin),
  "account/login/cancel": row(CancelLoginParams, cancelLogin),
  "account/logout": row(NoParams, logout),
  "account/rateLimits/read": row(NoParams, readRateLimits),
};
