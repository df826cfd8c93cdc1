/** The configuration as clients read and write it, and what it comes to. */
import type { Difference } from "../differences.ts";

export const AROUND_CONFIG: readonly Difference[] = [
  {
    in: /^config-(write|layers)/,
    message: /^answer config\/read$/,
    path: /^result\.config\.(?!(model_provider|model_reasoning_effort|tui\.notifications|features\.(no_such_feature|goals)|history\.persistence|sandbox_workspace_write\.network_access|model_providers\.mock\.(name|base_url|env_key|wire_api))$)/,
    why: "of keys that nobody has set only those are told that mean something here; layers and origins are the same",
  },
  {
    in: /^config-(write|layers)/,
    message: /^answer config\/read$/,
    path: /^result\.layers\.1$/,
    why: "there is no configuration of the system",
  },
  {
    in: /^config-write-(wrong|no-key)$/,
    message: /^answer config\/value\/write$/,
    path: /^error\.(message|data\.code)$/,
    why: "the words name file and line, and programs decide by a code",
  },
  {
    in: /^config-profile-table$/,
    why: "a profile may still be a table of config.toml; Codex has dropped it",
  },
  {
    in: /^(config-(layers|unknown)$|approve-escalation-wider$|permissions-)/,
    message: /^(configWarning|warning)$/,
    path: /^params\.(summary|message)$/,
    why: "keys that have no effect here are named, whether Codex knows them or not",
  },
  {
    in: /^search-by-feature$/,
    message: /^(deprecationNotice|configWarning)$/,
    why: "a deprecated key of the owner's file is named when a client connects, and what to write instead",
  },
  {
    in: /^search-without-network$/,
    kind: "added",
    message: /^warning$/,
    why: "a client's search needs the network of its thread, and the client is told; the owner's does not",
  },
  {
    in: /^(config-layers$|approve-escalation-wider$|permissions-)/,
    kind: "added",
    message: /^configWarning$/,
    why: "keys that have no effect here are named, whether Codex knows them or not",
  },
  {
    in: /^config-unknown$/,
    kind: "missing",
    message: /^configWarning$/,
    why: "keys that came with a thread are named in the warning about it alone; Codex names them to all clients too",
  },
  {
    in: /^config-unknown$/,
    kind: "moved",
    message: /^(thread\/started|warning)$/,
    isByChance: true,
    why: "the warning about a thread comes after the thread; Codex sends them in any order",
  },
  {
    in: /^model-unnamed$/,
    path: /model$/,
    why: "the usual model is that of Heddle's catalogue",
  },
  {
    in: /^environment-of-commands$/,
    message: /^process\/exited$/,
    path: /^params\.stdout$/,
    codex: "LANG=set TERM= USER= MOCK_KEY=set\n",
    heddle: "LANG=set TERM= USER= MOCK_KEY=\n",
    why: "keys of providers reach no process, whoever starts it",
  },
  {
    in: /^environment-resumed$/,
    message: /^item\/completed commandExecution$/,
    path: /aggregatedOutput$/,
    why: "a thread keeps the environment that was chosen for it; Codex forgets it when it is started again",
  },
  {
    in: /^tool-legacy-wrong$/,
    message: /^answer thread\/start$/,
    path: /^error\.message$/,
    why: "a tool without a name and a type lacks both; each program names one of them",
  },
];
