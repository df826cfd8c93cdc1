/** The commands. Each is loaded only when it is called, so that `--version` and a mistyped word cost nothing. */
import type { CommandEntry } from "./command.ts";

export const commands: Readonly<Record<string, CommandEntry>> = {
  exec: {
    summary: "Run one turn: a prompt in, work in the sandbox, the answer out",
    load: async () => (await import("./commands/exec.ts")).execCommand,
  },
  "app-server": {
    summary: "Serve threads and turns over JSON-RPC, as codex app-server does",
    load: async () => (await import("./commands/app-server.ts")).appServerCommand,
  },
  acp: {
    summary: "Serve an editor over the Agent Client Protocol",
    load: async () => (await import("./commands/acp.ts")).acpCommand,
  },
  serve: {
    summary: "Serve threads, turns and events over HTTP and JSON-RPC, for several clients",
    load: async () => (await import("./commands/serve.ts")).serveCommand,
  },
  dashboard: {
    summary: "Open the dashboard of a running server in the browser, logged in",
    load: async () => (await import("./commands/dashboard.ts")).dashboardCommand,
  },
  token: {
    summary: "Make, list or revoke tokens for clients of serve",
    load: async () => (await import("./commands/token.ts")).tokenCommand,
  },
  task: {
    summary: "Write, add, list and control tasks whose completion is decided by checks",
    load: async () => (await import("./commands/task.ts")).taskCommand,
  },
  contest: {
    summary: "Show how agents did at one task, or run several agents at a folder of tasks",
    load: async () => (await import("./commands/contest.ts")).contestCommand,
  },
  worker: {
    summary: "Take tasks of a store that several machines share",
    load: async () => (await import("./commands/worker.ts")).workerCommand,
  },
  cluster: {
    summary: "Show the workers of a store, drain one, or fence one",
    load: async () => (await import("./commands/cluster.ts")).clusterCommand,
  },
  watch: {
    summary: "Run the tasks of this home and show their progress",
    load: async () => (await import("./commands/watch.ts")).watchCommand,
  },
  envelopes: {
    summary: "List, show, check or draw envelopes: what agents may do",
    load: async () => (await import("./commands/envelopes.ts")).envelopesCommand,
  },
  threads: {
    summary: "List, show, export, name or delete threads",
    load: async () => (await import("./commands/threads.ts")).threadsCommand,
  },
  attach: {
    summary: "Take a thread over in its agent's own interface",
    load: async () => (await import("./commands/attach.ts")).attachCommand,
  },
  agents: {
    summary: "List agents, name them, and say whether messages wake them",
    load: async () => (await import("./commands/agents.ts")).agentsCommand,
  },
  tell: {
    summary: "Send an agent a message, with what you hand over named",
    load: async () => (await import("./commands/messages.ts")).tellCommand,
  },
  ask: {
    summary: "Ask an agent, and wait for its answer",
    load: async () => (await import("./commands/messages.ts")).askCommand,
  },
  notify: {
    summary: "Show notification sinks, and deliver again what failed",
    load: async () => (await import("./commands/notify.ts")).notifyCommand,
  },
  usage: {
    summary: "Show token usage and cost by day, model, workspace or task",
    load: async () => (await import("./commands/usage.ts")).usageCommand,
  },
  verify: {
    summary: "Check that the record was not changed",
    load: async () => (await import("./commands/verify.ts")).verifyCommand,
  },
  evidence: {
    summary: "Find what agents and users did, asked and concluded; note, export, purge",
    load: async () => (await import("./commands/evidence.ts")).evidenceCommand,
  },
  store: {
    summary: "Free the disk space of what was deleted",
    load: async () => (await import("./commands/store.ts")).storeCommand,
  },
  login: {
    summary: "Store a key for a provider, or log in to one",
    load: async () => (await import("./commands/login.ts")).loginCommand,
  },
  logout: {
    summary: "Remove an account from the credential store",
    load: async () => (await import("./commands/login.ts")).logoutCommand,
  },
  accounts: {
    summary: "Show who is logged in where, and what a run would use",
    load: async () => (await import("./commands/accounts.ts")).accountsCommand,
  },
  mcp: {
    summary: "List MCP servers, log in to one, or log out",
    load: async () => (await import("./commands/mcp.ts")).mcpCommand,
  },
  runners: {
    summary: "List who can carry out turns, and what is missing",
    load: async () => (await import("./commands/runners.ts")).runnersCommand,
  },
  models: {
    summary: "List the models that can be used",
    load: async () => (await import("./commands/models.ts")).modelsCommand,
  },
  config: {
    summary: "Read or change one key of config.toml",
    load: async () => (await import("./commands/config.ts")).configCommand,
  },
  schema: {
    summary: "Print the JSON Schemas of the output of exec and of the APIs of serve",
    load: async () => (await import("./commands/schema.ts")).schemaCommand,
  },
  completions: {
    summary: "Print completions for bash, zsh or fish",
    load: async () => (await import("./commands/completions.ts")).completionsCommand,
  },
  demo: {
    summary: "Watch a scripted model fix a failing test, in the real sandbox",
    load: async () => (await import("./commands/demo.ts")).demoCommand,
  },
  doctor: {
    summary: "Check what is missing on this machine, with the command that fixes it",
    load: async () => (await import("./commands/doctor.ts")).doctorCommand,
  },
};
