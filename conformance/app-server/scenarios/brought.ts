/** MCP servers that a client brings along with a thread. */
import { say } from "../../exec-case.ts";
import { initialize, threadStarted, turn, type Move, type Scenario } from "../scenario.ts";
import { ECHO_SERVER } from "./mcp.ts";

const FILES = { "echo.mjs": ECHO_SERVER };
const CALLED = [{ calls: [{ tool: "mcp__echo__echo", args: { text: "hi" } }] }, say("ok")];
const ECHO = { command: process.execPath, args: ["{root}/echo.mjs"], default_tools_approval_mode: "approve" };
const BROKEN = { command: "{root}/is-not-there", args: [] };
const brings = (servers: object): Readonly<Record<string, unknown>> => ({ config: { mcp_servers: servers } });
const start = (params: object): Move => ({
  call: "thread/start",
  params: { cwd: "{ws}", approvalPolicy: "never", sandbox: "workspace-write", ...params },
});
const begun: readonly Move[] = [initialize(), { say: { method: "initialized" } }];

export const BROUGHT: readonly Scenario[] = [
  {
    id: "mcp-brought",
    about: "an MCP server that the client brings, and a call of its tool",
    files: FILES,
    script: CALLED,
    moves: [...threadStarted(brings({ echo: ECHO })), ...turn("Say it")],
  },
  {
    id: "mcp-brought-two-clients",
    about: "who hears of the start of an MCP server, and who comes when it runs",
    door: "unix",
    files: FILES,
    script: [say("ok")],
    moves: [
      { open: "b" },
      initialize({ client: "b" }),
      ...threadStarted(brings({ echo: ECHO })),
      { until: "mcpServer/startupStatus/updated", where: { status: "ready" } },
      ...turn("Hello"),
      { client: "b", call: "thread/resume", params: { threadId: "{thread}", excludeTurns: true } },
    ],
  },
  {
    id: "mcp-brought-dotted",
    about: "an MCP server that is brought as a dotted key",
    files: FILES,
    script: CALLED,
    moves: [...threadStarted({ config: { "mcp_servers.echo": ECHO } }), ...turn("Say it")],
  },
  {
    id: "mcp-brought-broken",
    about: "an MCP server that is brought and cannot start",
    script: [say("ok")],
    moves: [...threadStarted(brings({ broken: BROKEN })), ...turn("Hello")],
  },
  {
    id: "mcp-brought-required",
    about: "a required MCP server that cannot start fails the start of the thread",
    script: [say("ok")],
    moves: [...begun, start(brings({ broken: { ...BROKEN, required: true } }))],
  },
  {
    id: "mcp-brought-required-ready",
    about: "a required MCP server that starts",
    files: FILES,
    script: CALLED,
    moves: [...threadStarted(brings({ echo: { ...ECHO, required: true } })), ...turn("Say it")],
  },
  {
    id: "mcp-brought-wrong",
    about: "an MCP server without a command or an address",
    script: [say("ok")],
    moves: [...begun, start(brings({ echo: { args: ["x"] } }))],
  },
  {
    id: "mcp-brought-resume",
    about: "an MCP server that is brought when a thread is resumed",
    files: FILES,
    script: [say("first"), ...CALLED],
    moves: [
      ...threadStarted(),
      ...turn("Hello"),
      { restart: "b" },
      initialize({ client: "b" }),
      { client: "b", say: { method: "initialized" } },
      { client: "b", call: "thread/resume", params: { threadId: "{thread}", ...brings({ echo: ECHO }) } },
      ...turn("Say it").map((move) => ({ client: "b", ...move })),
    ],
  },
  {
    id: "mcp-brought-kept",
    about: "an MCP server that was brought when the thread began is there after a restart",
    files: FILES,
    script: [say("first"), ...CALLED],
    moves: [
      ...threadStarted(brings({ echo: ECHO })),
      ...turn("Hello"),
      { restart: "b" },
      initialize({ client: "b" }),
      { client: "b", say: { method: "initialized" } },
      { client: "b", call: "thread/resume", params: { threadId: "{thread}" } },
      ...turn("Say it").map((move) => ({ client: "b", ...move })),
    ],
  },
  {
    id: "mcp-brought-fork",
    about: "an MCP server that is brought when a thread is forked",
    files: FILES,
    script: [say("first"), ...CALLED],
    moves: [
      ...threadStarted(),
      ...turn("Hello"),
      { call: "thread/fork", params: { threadId: "{thread}", ...brings({ echo: ECHO }) } },
      { until: "thread/started" },
      ...turn("Say it", "turn/completed", { threadId: "{thread2}" }),
    ],
  },
];
