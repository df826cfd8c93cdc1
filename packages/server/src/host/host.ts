/**
 * What the machine that a server runs on lends to its clients besides threads: its files, its commands, its configuration,
 * its accounts. Whoever starts the server says what of it there is.
 */
import type { SkillChoices } from "@heddle/agent";
import type { RunnerConfigs } from "@heddle/agent/runners";
import type { Accounts } from "@heddle/models/accounts";
import type { HookConfig, McpServerConfig } from "@heddle/protocol";

export interface Host {
  /** Commands get the allow-listed part of it. */
  readonly env: NodeJS.ProcessEnv;
  /** Absolute folders that clients may write, in addition to the workspaces of their threads. Absent: the server's own. */
  readonly writeRoots?: readonly string[] | undefined;
  readonly config?: ConfigSource | undefined;
  /** Shared by all clients; closed by the program that opened it. */
  readonly accounts?: (() => Promise<Accounts>) | undefined;
  /** Whether this provider is asked with the key or the login of OpenAI, and whether Codex has stored such a key. */
  readonly openAiAuth?: ((provider: string) => Promise<OpenAiAuth>) | undefined;
  readonly hooks?: readonly HookConfig[] | undefined;
  /** Absolute paths hidden from commands and MCP servers, in addition to Heddle's home: the server's own sockets. */
  readonly masked?: readonly string[] | undefined;
  readonly skills?: HostSkills | undefined;
  /** Agent programs as the owner wants them. */
  readonly runners?: RunnerConfigs | undefined;
  /** Codex's home, where its configuration is used: the owner's guide may be there. */
  readonly codexHome?: string | undefined;
  /** With what the engine was opened. */
  readonly mcpServers?: readonly McpServerConfig[] | undefined;
  /** As the configuration is now. */
  readonly readMcpServers?: (() => Promise<readonly McpServerConfig[]>) | undefined;
}

export interface OpenAiAuth {
  readonly isRequired: boolean;
  readonly hasCodexKey: boolean;
}

export interface HostSkills extends SkillChoices {
  /** For as long as the server runs. */
  setExtraRoots(roots: readonly string[]): void;
  /** By name, or by the absolute path of its SKILL.md; kept in the configuration. */
  setEnabled(skill: string, isEnabled: boolean): Promise<void>;
}

export interface ConfigLayer {
  readonly name: Readonly<Record<string, unknown>> & { readonly type: string };
  /** Changes when the content does. */
  readonly version: string;
  readonly config: Readonly<Record<string, unknown>>;
}

export interface ConfigView {
  /** What is in force. Values that open something are not in it. */
  readonly config: Readonly<Record<string, unknown>>;
  /** What it is made of; the first one wins. */
  readonly layers: readonly ConfigLayer[];
}

export interface ConfigEdit {
  readonly key: readonly string[];
  /** null: the key goes. */
  readonly value: unknown;
  /** Tables are joined key by key; otherwise what was there goes first. */
  readonly isJoined: boolean;
}

/** Given by the program that starts the server. Failures are typed. */
export interface ConfigSource {
  /** The file in force, which is the one that is written. */
  readonly file: string;
  read(): Promise<ConfigView>;
  /**
   * All edits or none, in one replacement of the file; comments and order stay. `expectedVersion`: refused when the file
   * has changed since. Answers its new version and, for each edit, the layer that overrules it where one does.
   */
  write(edits: readonly ConfigEdit[], expectedVersion: string | undefined): Promise<ConfigWritten>;
}

export interface ConfigWritten {
  readonly version: string;
  readonly overruled: { readonly layer: ConfigLayer; readonly value: unknown; readonly key: string } | undefined;
}
