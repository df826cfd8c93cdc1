/** What the model is told by clients, configuration and guides. */
import type { Difference } from "../differences.ts";

export const AROUND_INSTRUCTIONS: readonly Difference[] = [
  {
    in: /^instructions-by-missing-file$/,
    kind: "missing",
    message: /^configWarning$/,
    why: "no configuration is passed over for defaults; the call that needs the file tells that it is missing",
  },
  {
    in: /^instructions-(resumed|forked)-otherwise$/,
    message: /^model\/asked$/,
    path: /^params\.marks/,
    why: "developer instructions that come with thread/resume or thread/fork reach the model with the next turn; Codex keeps the older ones until the thread is compacted",
  },
  {
    in: /^instructions-by-config$/,
    message: /^answer config\/read$/,
    path: /^result\.(?!config\.((model_)?instructions|developer_instructions|model_(verbosity|reasoning_summary)|service_tier)$)/,
    why: "only settings that mean something here are told; the shape is held by the schema",
  },
  {
    in: /^instructions-by-old-name$/,
    why: "the older name of the file with instructions still works; Codex has dropped it",
  },
  {
    in: /^instructions-by-missing-file$/,
    message: /^answer thread\/start$/,
    path: /^error\.message$/,
    why: "the words say what to do",
  },
  {
    in: /^instructions-by-client-config$/,
    message: /^model\/asked$/,
    path: /^params\.verbosity$/,
    why: "a thread keeps the verbosity that was chosen for it; Codex forgets it when it is started again",
  },
  {
    in: /^instructions-with-turn-again$/,
    message: /^model\/asked$/,
    path: /^params\.marks/,
    why: "context that the conversation holds is not told twice; Codex forgets what it has told when it is started again",
  },
  {
    in: /^instructions-tier$/,
    kind: "added",
    message: /^warning$/,
    why: "a client is told which of its wishes have no effect",
  },
  {
    in: /^instructions-(tier|personality|by-mode)$/,
    kind: "moved",
    message: /^thread\/settings\/updated$/,
    why: "settings are told when they are stored, which is with the turn",
  },
  {
    in: /^instructions-by-mode$/,
    message: /^thread\/settings\/updated$/,
    path: /developer_instructions$/,
    why: "what agents are told in a mode of Heddle's own is not shown",
  },
  {
    in: /^instructions-by-mode$/,
    message: /^model\/asked$/,
    path: /^params\.marks/,
    why: "the instructions of a mode end with it; Codex leaves them in the conversation",
  },
  {
    in: /^guides-cut$/,
    message: /^model\/asked$/,
    path: /^params\.marks/,
    why: "the limit cuts the guide that is farthest from the workspace; Codex cuts the nearest, which counts most",
  },
];
