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
  serve: {
    summary: "Serve threads, turns and events over HTTP and JSON-RPC, for several clients",
    load: async () => (await import("./commands/serve.ts")).serveCommand,
  },
  token: {
    summary: "Make, list or revoke tokens for clients of serve",
    load: async () => (await import("./commands/token.ts")).tokenCommand,
  },
  task: {
    summary: "Write, add, list and control tasks whose completion is decided by checks",
    load: async () => (await import("./commands/task.ts")).taskCommand,
  },
  watch: {
    summary: "Run the tasks of this home and show their progress",
    load: async () => (await import("./commands/watch.ts")).watchCommand,
  },
  threads: {
    summary: "List, show, export, name or delete threads",
    load: async () => (await import("./commands/threads.ts")).threadsCommand,
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
